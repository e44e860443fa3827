import type { IncomingMessage } from "node:http";
import { describe, expect, test } from "vitest";
import { isNetwork, TrustedProxies } from "../../../src/gateway/access/trusted-proxies.ts";

test.each(["10.0.0.1", "10.0.0.0/8", "::1", "2001:db8::/32", "0.0.0.0/0"])("%s is a network", (text) => {
  expect(isNetwork(text)).toBe(true);
});
test.each(["", "localhost", "10.0.0.0/33", "10.0.0.0/", "10.0.0.0/8/8", "10.0.0/8", "::/129", "::1/x"])(
  "%s is none",
  (text) => {
    expect(isNetwork(text)).toBe(false);
  },
);

function addressOf(peer: string, headers: IncomingMessage["headers"]): string | undefined {
  const proxies = new TrustedProxies(["10.0.0.0/8", "::1"]);
  const message = { headers, socket: { remoteAddress: peer } } as unknown as IncomingMessage;
  return proxies.requestOf(message).remoteAddress;
}

describe("the address of a client", () => {
  test.each([
    ["a stranger is not believed", "192.0.2.1", { "x-forwarded-for": "198.51.100.1" }, "192.0.2.1"],
    ["a proxy without the header asks for itself", "10.0.0.1", {}, "10.0.0.1"],
    [
      "the last one that is no proxy",
      "10.0.0.1",
      { "x-forwarded-for": "1.1.1.1, 198.51.100.1, 10.0.0.2" },
      "198.51.100.1",
    ],
    ["in the form of IPv6", "::ffff:10.0.0.1", { "x-forwarded-for": "198.51.100.1" }, "198.51.100.1"],
    ["with a port", "::1", { "x-forwarded-for": "198.51.100.1:4711" }, "198.51.100.1"],
    ["by Forwarded", "::1", { forwarded: 'for=1.1.1.1;proto=http, for="[2001:db8::1]:80";by=10.0.0.1' }, "2001:db8::1"],
    ["no address at all", "10.0.0.1", { "x-forwarded-for": "unknown" }, "10.0.0.1"],
    ["only proxies", "10.0.0.1", { "x-forwarded-for": "10.0.0.2" }, "10.0.0.1"],
  ])("%s", (_what, peer, headers, address) => {
    expect(addressOf(peer, headers)).toBe(address);
  });
});
