import { expect, test } from "vitest";
import { advertisedUrl } from "../../src/main/advertised-url.ts";
import { parseConfig } from "../../src/main/config.ts";

const bound = "http://bound:8080";

test.each(["0.0.0.0", "::", "[::]", "0:0:0:0:0:0:0:0", "::ffff:0.0.0.0"])(
  "on %s, which is every address, no URL is advertised unless one is configured",
  (host) => {
    expect(advertisedUrl({ host, advertiseUrl: undefined }, bound)).toBeUndefined();
    expect(advertisedUrl({ host, advertiseUrl: "http://me:1" }, bound)).toBe("http://me:1");
  },
);

test.each(["127.0.0.1", "::1", "10.0.0.7", "fd00::1", "example.org"])("on %s, that address is advertised", (host) => {
  expect(advertisedUrl({ host, advertiseUrl: undefined }, bound)).toBe(bound);
});

test("it must be a URL", () => {
  const parse = (advertiseUrl: string) => parseConfig({ flags: { advertiseUrl }, env: {}, homeDirectory: "/home/ada" });
  expect(parse("https://me.example/box/").advertiseUrl).toBe("https://me.example/box");
  expect(() => parse("me.example")).toThrow(/--advertise-url.*must be a URL/);
});
