import { once } from "node:events";
import { connect, createServer, type AddressInfo, type Server, type Socket } from "node:net";
import type { NetworkPolicy } from "@sandboxer/protocol";
import { afterEach, expect, test } from "vitest";
import { Egress, type Refusal } from "../../src/egress/egress.ts";
import { GivenAddresses } from "../../src/egress/given-addresses.ts";
import { Outside, type OutsideOptions } from "../../src/egress/outside.ts";
import { TransparentProxy } from "../../src/egress/transparent-proxy.ts";

const closers: (() => void)[] = [];
afterEach(() => {
  for (const close of closers.splice(0)) close();
});

async function listening(server: Server): Promise<number> {
  closers.push(() => void server.close());
  await once(server.listen(0, "127.0.0.1"), "listening");
  return (server.address() as AddressInfo).port;
}

const speaksFirst = (): Promise<number> =>
  listening(createServer((socket) => void socket.on("error", () => {}).end("hello")));
const echo = (): Promise<number> =>
  listening(createServer({ allowHalfOpen: true }, (socket) => void socket.on("error", () => {}).pipe(socket)));

/** A sandbox whose programs connect to any address; `dial` resolves to the program's end. */
async function open(policy: NetworkPolicy, options: OutsideOptions = {}, nameMs = 60_000) {
  const refused: Refusal[] = [];
  const outside = new Outside({
    allowed: ["127.0.0.0/8"],
    resolve: async () => ["127.0.0.1"],
    ownAddresses: () => [],
    ...options,
  });
  const egress = new Egress({ policy, outside, onRefused: (refusal) => refused.push(refusal) });
  const given = new GivenAddresses();
  const proxy = new TransparentProxy(egress, given, nameMs);
  const waiting: { address: string; port: number }[] = [];
  const door = await listening(
    createServer((socket) => {
      const to = waiting.shift();
      if (to !== undefined) proxy.accept(socket, to);
    }),
  );
  closers.push(() => egress.close());
  const dial = (address: string, port: number): Socket => {
    waiting.push({ address, port });
    return connect({ port: door, host: "127.0.0.1", allowHalfOpen: true }).on("error", () => {});
  };
  return { refused, egress, given, dial };
}

/** All received data; `reset` if the connection was reset. */
async function heard(socket: Socket, until?: string): Promise<string> {
  let text = "";
  return new Promise((resolve) => {
    socket.on("data", (chunk: Buffer) => {
      text += chunk.toString("latin1");
      if (until !== undefined && text.includes(until)) resolve(text);
    });
    socket.once("end", () => resolve(text));
    socket.once("error", (error: NodeJS.ErrnoException) =>
      resolve(error.code === "ECONNRESET" ? "reset" : `${error.code}`),
    );
  });
}

test("an address of an allowed name is connected to, whatever the protocol", async () => {
  const port = await speaksFirst();
  const { dial, given, refused, egress } = await open({ allow: ["db.test"] });
  given.note("db.test", ["127.0.0.1"]);
  const program = dial("127.0.0.1", port);
  expect(await heard(program)).toBe("hello");
  program.end();
  expect(refused).toEqual([]);
  await expect.poll(() => egress.figures).toEqual({ openConnections: 0, sentBytes: 0, receivedBytes: 5 });
});

test("an unknown address is refused with a reset, and reported", async () => {
  const port = await speaksFirst();
  const { dial, refused, given } = await open({ allow: ["db.test:5432"] }, {}, 20);
  expect(await heard(dial("127.0.0.1", port))).toBe("reset");
  given.note("db.test", ["127.0.0.1"]);
  expect(await heard(dial("127.0.0.1", port))).toBe("reset");
  expect(refused).toMatchObject([
    { name: "127.0.0.1", port, rule: "not in allow" },
    { name: "db.test", port, rule: "not in allow" },
  ]);
});

test("a name of two that share an address must be the one in the greeting", async () => {
  const port = await echo();
  const { dial, given, refused } = await open({ allow: ["good.test"], deny: ["bad.test"] });
  given.note("good.test", ["127.0.0.1"]);
  const good = dial("127.0.0.1", port);
  good.write("GET / HTTP/1.1\r\nHost: good.test\r\n\r\n");
  expect(await heard(good, "\r\n\r\n")).toContain("good.test");
  good.destroy();
  const bad = dial("127.0.0.1", port);
  bad.write("GET / HTTP/1.1\r\nHost: bad.test\r\n\r\n");
  expect(await heard(bad)).not.toContain("bad.test");
  expect(refused).toMatchObject([{ name: "bad.test", rule: "Host differs from good.test: deny bad.test" }]);
});

test("without a known name the greeting decides, and the connection goes to the address of its name", async () => {
  const port = await echo();
  const { dial, refused } = await open({ allow: ["good.test"] });
  const good = dial("203.0.113.9", port);
  good.write("GET / HTTP/1.1\r\nHost: good.test\r\n\r\n");
  expect(await heard(good, "\r\n\r\n")).toContain("good.test");
  good.destroy();
  const bad = dial("203.0.113.9", port);
  bad.write("GET / HTTP/1.1\r\nHost: bad.test\r\n\r\n");
  expect(await heard(bad)).toBe("reset");
  expect(refused).toMatchObject([{ name: "bad.test", port, rule: "not in allow" }]);
});

test("private addresses and those of the server are refused under every policy, even for resolved names", async () => {
  const port = await speaksFirst();
  const { dial, given, refused } = await open("open", { allowed: [] });
  given.note("rebound.test", ["127.0.0.1"]);
  expect(await heard(dial("127.0.0.1", port))).toBe("reset");
  const own = await open("open", { allowed: [], ownAddresses: () => ["203.0.113.1"] });
  expect(await heard(own.dial("203.0.113.1", port))).toBe("reset");
  expect([...refused, ...own.refused]).toMatchObject([
    { name: "rebound.test", rule: "private address", address: "127.0.0.1" },
    { name: "203.0.113.1", rule: "address of the server" },
  ]);
});

test("open connections end when the policy changes and forbids them", async () => {
  const port = await echo();
  const { dial, egress, refused } = await open("open");
  const stream = dial("127.0.0.1", port);
  stream.write("hi");
  expect(await heard(stream, "hi")).toBe("hi");
  const closed = once(stream, "close");
  egress.setPolicy("none");
  stream.end();
  await closed;
  expect(await heard(dial("127.0.0.1", port))).toBe("reset");
  expect(refused).toMatchObject([{ rule: "network none" }]);
});
