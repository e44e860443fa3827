import fc from "fast-check";
import { describe, expect, test } from "vitest";
import {
  contains,
  isPrivateAddress,
  NetworkJudge,
  networkSettingSchema,
  networkText,
  normalHost,
  normalNetwork,
  parseAddress,
  parseEntry,
  parseNetworkText,
  parseRange,
  storedNetwork,
  type NetworkPolicy,
} from "../../src/index.ts";

const address = (text: string) => parseAddress(text) ?? expect.fail(`${text} is no address`);
const rule = (policy: NetworkPolicy, name: string, port = 443, at?: string): string => {
  const verdict = new NetworkJudge(policy).judge({ name, port, ...(at === undefined ? {} : { address: address(at) }) });
  return verdict.allowed ? "allowed" : verdict.rule;
};

describe("addresses", () => {
  test.each([
    ["127.0.0.1", "::ffff:127.0.0.1"],
    ["10.1.2.3", "::ffff:a01:203"],
    ["10.1.2.3", "64:ff9b::10.1.2.3"],
    ["10.1.2.3", "::10.1.2.3"],
    ["fe80::1", "FE80:0:0:0:0:0:0:1"],
  ])("%s is also written %s", (usual, other) => {
    expect(parseAddress(other)).toEqual(parseAddress(usual));
  });

  test.each([
    "",
    "1.2.3",
    "1.2.3.256",
    "01.2.3.4",
    "1.2.3.4.5",
    ":::",
    "1::2::3",
    "12345::",
    "fe80::1%eth0",
    "::1.2.3",
  ])("%s is not an address", (text) => {
    expect(parseAddress(text)).toBeUndefined();
  });

  test("every IPv4 address is in the ranges that share its prefix", () => {
    fc.assert(
      fc.property(fc.ipV4(), fc.integer({ min: 0, max: 32 }), (text, prefix) => {
        const range = parseRange(`${text}/${prefix}`);
        return range !== undefined && contains(range, address(text)) && contains(range, address(`::ffff:${text}`));
      }),
    );
  });

  test("every IPv6 address is in the ranges that share its prefix", () => {
    fc.assert(
      fc.property(fc.ipV6(), fc.integer({ min: 0, max: 64 }), (text, prefix) => {
        const [range, parsed] = [parseRange(`${text}/${prefix}`), parseAddress(text)];
        return range !== undefined && parsed !== undefined && (parsed.bits === 32 || contains(range, parsed));
      }),
    );
  });

  test.each([
    "127.0.0.1",
    "169.254.169.254",
    "168.63.129.16",
    "10.9.8.7",
    "100.100.100.200",
    "::1",
    "fd00:ec2::254",
    "fe80::1",
    "::ffff:169.254.169.254",
    "64:ff9b::a9fe:a9fe",
    "2002:7f00:1::",
    "0.0.0.0",
    "::",
  ])("%s is private", (text) => {
    expect(isPrivateAddress(address(text))).toBe(true);
  });

  test.each(["1.1.1.1", "192.0.2.1", "2606:4700::1111", "172.32.0.1"])("%s is outside", (text) => {
    expect(isPrivateAddress(address(text))).toBe(false);
  });
});

describe("entries", () => {
  test.each([
    ["Example.COM", "example.com"],
    ["example.com.", "example.com"],
    ["*.Example.com:443", "*.example.com:443"],
    ["bücher.example", "xn--bcher-kva.example"],
    ["10.0.0.0/8:5432", "10.0.0.0/8:5432"],
    ["2001:DB8::/32", "2001:db8::/32"],
    ["[2001:db8::1]:443", "[2001:db8::1]:443"],
    ["*", "*"],
    ["*:443", "*:443"],
  ])("%s is %s", (given, usual) => {
    expect(parseEntry(given)?.text).toBe(usual);
    expect(parseEntry(usual)?.text).toBe(usual);
  });

  test.each([
    "",
    " ",
    "a b",
    "http://example.com",
    "example.com/path",
    "*.*.com",
    "a..b",
    "exa*mple.com",
    "example.com:0",
    "example.com:65536",
    "10.0.0.0/33",
    "[10.0.0.1",
    "[example.com]:80",
    "127.1",
    "0x7f.0.0.1",
    "2130706433",
    "user@example.com",
    "-a.com",
    "%00.com",
  ])("%s is not an entry", (text) => {
    expect(parseEntry(text)).toBeUndefined();
  });

  test("an entry's spelling is stable, and matches its destination", () => {
    fc.assert(
      fc.property(fc.domain(), fc.option(fc.integer({ min: 1, max: 65_535 })), (domain, port) => {
        const text = port === null ? domain : `${domain}:${port}`;
        const entry = parseEntry(text);
        expect(entry?.text).toBe(parseEntry(entry?.text ?? "")?.text);
        const name = normalHost(domain) ?? "";
        expect(rule({ allow: [text] }, name, port ?? 80)).toBe("allowed");
        expect(rule({ deny: [text] }, name, port ?? 80)).toMatch(/^deny /);
        expect(rule({ allow: [text] }, `evil-${name}`, port ?? 80)).toBe("not in allow");
      }),
    );
  });

  test("no text makes the parser throw", () => {
    fc.assert(
      fc.property(
        fc.string(),
        (text) => void [parseEntry(text), parseNetworkText(text), normalHost(text), parseRange(text)],
      ),
    );
  });

  test("a host is normalised as browsers do, so that no spelling evades a rule", () => {
    expect(["EXAMPLE.com", "example.com.", "127.1", "0x7f000001", "017700000001"].map(normalHost)).toEqual([
      "example.com",
      "example.com",
      "127.0.0.1",
      "127.0.0.1",
      "127.0.0.1",
    ]);
    expect(["", "a b", "a/b", "a:80", "[::1]", "a\u0000b", "x".repeat(300)].map(normalHost)).toEqual(
      Array(7).fill(undefined),
    );
  });
});

describe("policies", () => {
  test("none refuses, open allows", () => {
    expect(rule("none", "example.com")).toBe("network none");
    expect(rule("open", "example.com", 25, "192.0.2.1")).toBe("allowed");
  });

  test("a wildcard matches names below a domain, not the domain itself", () => {
    const policy = { allow: ["*.example.com"] };
    expect(rule(policy, "a.b.example.com")).toBe("allowed");
    expect(rule(policy, "example.com")).toBe("not in allow");
    expect(rule(policy, "notexample.com")).toBe("not in allow");
  });

  test("deny comes before allow", () => {
    const policy = { allow: ["*.example.com"], deny: ["bad.example.com", "192.0.2.0/24"] };
    expect(rule(policy, "good.example.com", 443, "203.0.113.1")).toBe("allowed");
    expect(rule(policy, "bad.example.com")).toBe("deny bad.example.com");
    expect(rule(policy, "good.example.com", 443, "192.0.2.9")).toBe("deny 192.0.2.0/24");
  });

  test("a name may resolve into an allowed network; a name that cannot is not resolved", () => {
    const policy = { allow: ["192.0.2.0/24:443"] };
    expect(rule(policy, "example.com")).toBe("allowed");
    expect(rule(policy, "example.com", 80)).toBe("not in allow");
    expect(rule(policy, "example.com", 443, "192.0.2.7")).toBe("allowed");
    expect(rule(policy, "example.com", 443, "203.0.113.7")).toBe("not in allow");
    expect(rule({ allow: ["other.example"] }, "data.carried.by.a.name")).toBe("not in allow");
  });

  test("an empty list allows nothing", () => {
    expect(rule({ allow: [] }, "example.com")).toBe("not in allow");
  });

  test("ports restrict entries", () => {
    expect(rule({ allow: ["*:443"] }, "example.com", 443)).toBe("allowed");
    expect(rule({ allow: ["*:443"] }, "example.com", 80)).toBe("not in allow");
  });

  test("the earlier name sandbox means open, and is stored for servers of earlier releases", () => {
    expect(normalNetwork("sandbox")).toBe("open");
    expect(storedNetwork("open")).toBe("sandbox");
    expect(normalNetwork({})).toBe("open");
    expect(normalNetwork({ allow: ["A.com", "a.com"], deny: [] })).toEqual({ allow: ["a.com"] });
  });

  test("requests with invalid entries are refused with the reason", () => {
    const issue = networkSettingSchema.safeParse({ allow: ["http://x"] }).error?.issues[0];
    expect(JSON.stringify(issue)).toContain("must be a domain");
    expect(networkSettingSchema.safeParse("everything").error?.issues[0]?.message).toContain('must be "none", "open"');
    expect(networkSettingSchema.safeParse({ allow: [], extra: 1 }).success).toBe(false);
    expect(networkSettingSchema.safeParse({ allow: Array(257).fill("a.com") }).success).toBe(false);
  });

  test.each<[string, NetworkPolicy | undefined]>([
    ["none", "none"],
    ["open", "open"],
    ["sandbox", "open"],
    ["pypi.org,*.pythonhosted.org:443", { allow: ["pypi.org", "*.pythonhosted.org:443"] }],
    ["!bad.example", { deny: ["bad.example"] }],
    ["open,!bad.example", { deny: ["bad.example"] }],
    ["*.example.com,!bad.example.com", { allow: ["*.example.com"], deny: ["bad.example.com"] }],
    ["open,example.com", undefined],
    ["http://x", undefined],
    ["", undefined],
  ])("the text %s is read", (text, policy) => {
    expect(parseNetworkText(text)).toEqual(policy);
    if (policy !== undefined) expect(parseNetworkText(networkText(policy))).toEqual(policy);
  });
});
