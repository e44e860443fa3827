import type { NetworkPolicy } from "@sandboxer/protocol";
import { expect, test } from "vitest";
import { addressesOf, NAMESERVER, poolConflict, SLOTS } from "../../../src/backends/gvisor/network/addresses.ts";
import { firewallText } from "../../../src/backends/gvisor/network/firewall.ts";
import { probeNetwork } from "../../../src/backends/gvisor/network/network-support.ts";

test("every link has four addresses of its own and a name that the kernel accepts", () => {
  expect(addressesOf(0)).toEqual({ link: "sandboxer-0", host: "10.213.0.1", sandbox: "10.213.0.2" });
  expect(addressesOf(64)).toMatchObject({ host: "10.213.1.1", sandbox: "10.213.1.2" });
  const last = addressesOf(SLOTS - 1);
  expect(last).toEqual({ link: "sandboxer-16382", host: "10.213.255.249", sandbox: "10.213.255.250" });
  expect(NAMESERVER).toBe("10.213.255.253");
  expect(last.link.length).toBeLessThanOrEqual(15);
});

const textOf = (policy: NetworkPolicy, allowed: readonly string[] = []): string =>
  firewallText({ table: "t", ports: { connections: 1001, names: 1002 }, allowed, links: [{ link: "l-1", policy }] });
/** The rules of the sandbox's own chain. */
const rulesOf = (policy: NetworkPolicy, allowed?: readonly string[], chain = "l-1"): string[] =>
  (new RegExp(`chain ${chain} \\{\\n([^}]*(?:\\}[^\\n}]*\\n[^}]*)*?)  \\}\\n`).exec(textOf(policy, allowed))?.[1] ?? "")
    .split("\n")
    .map((line) => line.trim())
    .filter((line) => line !== "");

test.each(["168.63.129.16/32", "192.0.0.0/24", "198.18.0.0/15", "169.254.0.0/16"])(
  "%s is not the outside",
  (network) => {
    const [, blocked = ""] = /set private \{[^{]*\{ ([^}]+) \}/.exec(textOf("open")) ?? [];
    expect(blocked.split(", ")).toContain(network);
  },
);

test("only an open network reaches the internet directly, and private networks if the operator allows it", () => {
  expect(textOf("open")).toContain('set direct { type ifname; elements = { "l-1" }; }');
  expect(textOf({ deny: ["bad.example"] })).toContain("set direct { type ifname;  }");
  expect(rulesOf("open")).toEqual(["ip daddr @private return", "accept"]);
  expect(rulesOf("open", ["10.1.0.0/16", "fd00::/8"])[0]).toBe("ip daddr 10.1.0.0/16 accept");
  expect(rulesOf("none")).toEqual([]);
});

test("lists let datagrams pass only to addresses that they name", () => {
  const policy = {
    allow: ["dns.example", "*", "192.0.2.7/24:53", "198.51.100.9", "2001:db8::/32"],
    deny: ["192.0.2.9"],
  };
  expect(rulesOf(policy, ["10.1.0.0/16"])).toEqual([
    "ip daddr 192.0.2.9/32 meta l4proto { udp, icmp } return",
    "ip daddr 10.1.0.0/16 jump l-1-allowed",
    "ip daddr @private return",
    "ip daddr 192.0.2.0/24 udp dport 53 accept",
    "ip daddr 198.51.100.9/32 meta l4proto { udp, icmp } accept",
  ]);
  expect(rulesOf({ deny: ["192.0.2.9:53"] })).toEqual([
    "ip daddr 192.0.2.9/32 udp dport 53 return",
    "ip daddr @private return",
  ]);
});

test("a missing requirement is reported with its remedy", async () => {
  expect(await probeNetwork("20240729.0", "")).toMatchObject({ ok: false, reason: expect.stringMatching(/2025/) });
  expect(await probeNetwork("self-test", "")).toMatchObject({ ok: false });
  expect(await probeNetwork("20260701.0", "/nowhere")).toMatchObject({ remedy: "apt-get install iproute2" });
});

test("a host with an address in the pool is noticed", () => {
  const address = { address: "10.213.4.1", family: "IPv4", netmask: "", mac: "", internal: false, cidr: null } as const;
  expect(poolConflict({ lan0: [address] })).toBe("lan0");
  expect(poolConflict({ "sandboxer-7": [address] })).toBeUndefined();
});
