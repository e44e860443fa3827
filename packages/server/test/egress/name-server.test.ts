import { once } from "node:events";
import { createSocket } from "node:dgram";
import type { NetworkPolicy } from "@sandboxer/protocol";
import { Resolver } from "node:dns/promises";
import { expect, onTestFinished, test } from "vitest";
import { A, AAAA, parseQuestion } from "../../src/egress/dns-message.ts";
import { Egress, type Refusal } from "../../src/egress/egress.ts";
import { GivenAddresses } from "../../src/egress/given-addresses.ts";
import { NameServer } from "../../src/egress/name-server.ts";
import { Outside, type OutsideOptions } from "../../src/egress/outside.ts";

const PUBLIC = "203.0.113.2";

/** A query as programs send it. */
function query(name: string, type = A, change: (message: Buffer) => void = () => {}): Buffer {
  const labels = name.split(".").flatMap((label) => [Buffer.from([label.length]), Buffer.from(label, "latin1")]);
  const message = Buffer.concat([
    Buffer.from([0x12, 0x34, 1, 0, 0, 1, 0, 0, 0, 0, 0, 0]),
    ...labels,
    Buffer.from([0, type >> 8, type & 255, 0, 1]),
  ]);
  change(message);
  return message;
}

/** The code and the addresses of an answer. */
function read(answer: Buffer | undefined): { code: number; addresses: string[] } | undefined {
  if (answer === undefined) return undefined;
  expect(answer.readUInt16BE(0)).toBe(0x1234);
  const count = answer.readUInt16BE(6);
  const records = answer.subarray(answer.length - 16 * count);
  const addresses = Array.from({ length: count }, (_, index) =>
    records.subarray(16 * index + 12, 16 * index + 16).join("."),
  );
  return { code: answer.readUInt16BE(2) & 15, addresses };
}

function open(policy: NetworkPolicy, addresses: Record<string, readonly string[]> = {}, options: OutsideOptions = {}) {
  const [refused, asked]: [Refusal[], string[]] = [[], []];
  const resolve = async (name: string): Promise<readonly string[]> => {
    asked.push(name);
    const found = addresses[name];
    if (found === undefined) throw Object.assign(new Error("none"), { code: "ENOTFOUND" });
    return found;
  };
  const outside = new Outside({ resolve, ownAddresses: () => ["203.0.113.1"], ...options });
  const egress = new Egress({ policy, outside, onRefused: (refusal) => refused.push(refusal) });
  const given = new GivenAddresses();
  const server = new NameServer(egress, given);
  return {
    refused,
    asked,
    given,
    egress,
    server,
    ask: async (name: string, type?: number) => read(await server.answer(query(name, type))),
  };
}

test("an allowed name is answered with its addresses, which are remembered", async () => {
  const { ask, given, refused } = open(
    { allow: ["web.test:443"] },
    { "web.test": [PUBLIC, "2001:db8::1", "203.0.113.3"] },
  );
  expect(await ask("WEB.test")).toEqual({ code: 0, addresses: [PUBLIC, "203.0.113.3"] });
  expect(await ask("web.test", AAAA)).toEqual({ code: 0, addresses: [] });
  expect(given.namesOf("203.0.113.3")).toEqual(["web.test"]);
  expect(refused).toEqual([]);
});

test("a name that no rule can allow is not resolved, and refused once for both kinds of addresses", async () => {
  const { ask, asked, refused } = open({ allow: ["web.test"], deny: ["bad.web.test"] });
  expect(await ask("evil.test")).toEqual({ code: 3, addresses: [] });
  expect(await ask("evil.test", AAAA)).toEqual({ code: 3, addresses: [] });
  expect(asked).toEqual([]);
  expect(refused).toEqual([{ name: "evil.test", port: 53, rule: "not in allow (name lookup)", address: undefined }]);
  const none = open("none");
  expect(await none.ask("web.test")).toEqual({ code: 3, addresses: [] });
});

test("a denied port denies no name, and a denied name does", async () => {
  const { ask } = open({ deny: ["web.test:22", "bad.test"] }, { "web.test": [PUBLIC], "bad.test": [PUBLIC] });
  expect(await ask("web.test")).toEqual({ code: 0, addresses: [PUBLIC] });
  expect(await ask("bad.test")).toEqual({ code: 3, addresses: [] });
});

test.each(["10.0.0.1", "127.0.0.1", "169.254.169.254", "168.63.129.16", "203.0.113.1"])(
  "a name that resolves to %s is refused, even on a second lookup",
  async (address) => {
    const addresses: Record<string, readonly string[]> = { "web.test": [PUBLIC] };
    const { ask, given, refused } = open("open", addresses);
    expect(await ask("web.test")).toEqual({ code: 0, addresses: [PUBLIC] });
    addresses["web.test"] = [address];
    expect(await ask("web.test")).toEqual({ code: 3, addresses: [] });
    expect(given.namesOf(address)).toEqual([]);
    expect(refused).toMatchObject([{ name: "web.test", address, rule: expect.stringContaining("(name lookup)") }]);
    const allowed = open("open", addresses, { allowed: [`${address}/32`] });
    expect(await allowed.ask("web.test")).toEqual({ code: 0, addresses: [address] });
  },
);

test("addresses that a list of networks does not allow are left out", async () => {
  const { ask } = open({ allow: ["203.0.113.0/24"] }, { "web.test": ["198.51.100.1", PUBLIC] });
  expect(await ask("web.test")).toEqual({ code: 0, addresses: [PUBLIC] });
});

test("localhost is the sandbox itself; unknown and odd names do not exist", async () => {
  const { ask, asked } = open("open");
  expect(await ask("localhost")).toEqual({ code: 0, addresses: ["127.0.0.1"] });
  expect(await ask("a.localhost", AAAA)).toEqual({ code: 0, addresses: [] });
  for (const name of ["127.0.0.1", "a b.test", "a@b.test"]) expect((await ask(name))?.code).not.toBe(0);
  expect(asked).toEqual([]);
  expect(await ask("missing.test")).toEqual({ code: 3, addresses: [] });
  expect(asked).toEqual(["missing.test"]);
});

test("other records of an allowed name come from the nameserver; unknown kinds are empty", async () => {
  const upstream = createSocket("udp4");
  onTestFinished(() => void upstream.close());
  upstream.on("message", (message, { port }) => {
    const answer = Buffer.from(message);
    answer.writeUInt16BE(0x8180, 2);
    upstream.send(Buffer.concat([answer, Buffer.from("the rest")]), port);
  });
  upstream.bind(0, "127.0.0.1");
  await once(upstream, "listening");
  const { server, ask } = open({ allow: ["web.test"] }, {}, { nameservers: [`127.0.0.1:${upstream.address().port}`] });
  const answer = await server.answer(query("web.test", 16));
  expect(answer?.readUInt16BE(0)).toBe(0x1234);
  expect(answer?.toString("latin1")).toContain("the rest");
  expect(await ask("evil.test", 16)).toEqual({ code: 3, addresses: [] });
  expect(await ask("web.test", 65)).toEqual({ code: 0, addresses: [] });
});

test.each<[string, Buffer]>([
  ["nothing", Buffer.alloc(0)],
  ["a header", query("a.test").subarray(0, 12)],
  ["a name without an end", query("a.test").subarray(0, 16)],
  ["an answer", query("a.test", A, (message) => message.writeUInt8(0x81, 2))],
  ["two questions", query("a.test", A, (message) => message.writeUInt16BE(2, 4))],
  ["another class", query("a.test", A, (message) => message.writeUInt16BE(3, message.length - 2))],
  ["a compressed name", query("a.test", A, (message) => message.writeUInt16BE(0xc00c, 12))],
  ["a label with a dot", query("a.test", A, (message) => message.write(".", 13))],
  ["a label of control characters", query("a.test", A, (message) => message.write("\n", 13))],
  ["a long name", query(Array(80).fill("aaaa").join("."))],
])("%s is no question", async (_, message) => {
  expect(parseQuestion(message)).toBeUndefined();
  expect(await open("open").server.answer(message)).toBeUndefined();
});

test("random bytes never make it fail", async () => {
  const { server } = open("open");
  let seed = 1;
  const next = (): number => (seed = (seed * 48_271) % 2_147_483_647);
  for (let count = 0; count < 2000; count++) {
    const message = query("some.name.test", next() % 300);
    for (let flips = next() % 6; flips > 0; flips--) message[next() % message.length] = next() & 255;
    const answer = await server.answer(message.subarray(0, 1 + (next() % message.length)));
    expect(answer?.length ?? 12).toBeGreaterThanOrEqual(12);
  }
});

test("a resolver of Node understands the answers", async () => {
  const { server } = open("open", { "web.test": [PUBLIC, "203.0.113.3"] });
  const socket = createSocket("udp4").bind(0, "127.0.0.1");
  onTestFinished(() => void socket.close());
  socket.on("message", (message, { port }) => {
    void server.answer(message).then((answer) => answer !== undefined && socket.send(answer, port));
  });
  await once(socket, "listening");
  const resolver = new Resolver({ timeout: 5_000, tries: 1 });
  resolver.setServers([`127.0.0.1:${socket.address().port}`]);
  expect(await resolver.resolve4("web.test")).toEqual([PUBLIC, "203.0.113.3"]);
  await expect(resolver.resolve4("missing.test")).rejects.toMatchObject({ code: "ENOTFOUND" });
  await expect(resolver.resolve6("web.test")).rejects.toMatchObject({ code: "ENODATA" });
});
