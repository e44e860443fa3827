import { expect, test } from "vitest";
import { addressesOf, poolConflict, SLOTS } from "../../../src/backends/gvisor/network/addresses.ts";
import { egressPolicy } from "../../../src/backends/gvisor/network/egress-policy.ts";
import { reachableNameservers } from "../../../src/backends/gvisor/network/nameservers.ts";
import { probeNetwork } from "../../../src/backends/gvisor/network/network-support.ts";

test("every link has four addresses of its own and a name that the kernel takes", () => {
  expect(addressesOf(0)).toEqual({ link: "sandboxer-0", host: "10.213.0.1", sandbox: "10.213.0.2" });
  expect(addressesOf(64)).toMatchObject({ host: "10.213.1.1", sandbox: "10.213.1.2" });
  const last = addressesOf(SLOTS - 1);
  expect(last).toEqual({ link: "sandboxer-16383", host: "10.213.255.253", sandbox: "10.213.255.254" });
  expect(last.link.length).toBeLessThanOrEqual(15);
});

test("nameservers on the host itself and of IPv6 are left out", () => {
  const file =
    "# nameserver 1.2.3.4\nnameserver 127.0.0.53\nnameserver ::1\nnameserver 192.0.2.9\n nameserver 10.0.0.2 \n";
  expect(reachableNameservers(file, new Set(["192.0.2.9"]))).toEqual(["10.0.0.2"]);
  expect(reachableNameservers("search example\n", new Set())).toEqual([]);
});

test("nameservers in private networks are asked on their port and no other", () => {
  expect(egressPolicy("t", ["10.0.0.2"])).toMatch(
    /ip daddr \{ 10\.0\.0\.2 \} .* th dport 53 accept\n +ip daddr \{ 0\./,
  );
  expect(egressPolicy("t", [])).not.toContain("dport");
});

test.each(["168.63.129.16/32", "192.0.0.0/24", "198.18.0.0/15", "169.254.0.0/16"])(
  "%s is not the outside",
  (network) => {
    const [, blocked = ""] = /ip daddr \{ ([^}]+) \} reject/.exec(egressPolicy("t", [])) ?? [];
    expect(blocked.split(", ")).toContain(network);
  },
);

test("a missing requirement is reported with its remedy", async () => {
  expect(await probeNetwork("20240729.0", "")).toMatchObject({ ok: false, reason: expect.stringMatching(/2025/) });
  expect(await probeNetwork("self-test", "")).toMatchObject({ ok: false });
  expect(await probeNetwork("20260701.0", "/nowhere")).toMatchObject({ remedy: "apt-get install iproute2" });
});

test("a host that lives in the pool's addresses is noticed", () => {
  const address = { address: "10.213.4.1", family: "IPv4", netmask: "", mac: "", internal: false, cidr: null } as const;
  expect(poolConflict({ lan0: [address] })).toBe("lan0");
  expect(poolConflict({ "sandboxer-7": [address] })).toBeUndefined();
});
