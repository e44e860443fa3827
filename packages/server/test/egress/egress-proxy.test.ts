import { once } from "node:events";
import { createServer as createHttpServer, type Server as HttpServer } from "node:http";
import { createServer, type AddressInfo, type Server, type Socket } from "node:net";
import { type Duplex, duplexPair } from "node:stream";
import { afterEach, describe, expect, test } from "vitest";
import type { NetworkPolicy } from "@sandboxer/protocol";
import { Egress, type Refusal } from "../../src/egress/egress.ts";
import { EgressProxy } from "../../src/egress/egress-proxy.ts";
import { Outside, type OutsideOptions } from "../../src/egress/outside.ts";

const servers: (Server | HttpServer)[] = [];
const opened: Egress[] = [];
afterEach(() => {
  for (const egress of opened.splice(0)) egress.close();
  for (const server of servers.splice(0)) server.close();
});

async function portOf(server: Server | HttpServer): Promise<number> {
  servers.push(server.listen(0, "127.0.0.1"));
  await once(server, "listening");
  return (server.address() as AddressInfo).port;
}

/** The requests that a web server received. */
async function webServer(): Promise<{ port: number; seen: { url: string; headers: object; body: string }[] }> {
  const seen: { url: string; headers: object; body: string }[] = [];
  const server = createHttpServer((request, response) => {
    let body = "";
    request.on("data", (chunk: Buffer) => (body += chunk.toString()));
    request.once("end", () => {
      seen.push({ url: request.url ?? "", headers: request.headers, body });
      response.setHeader("x-test", "1");
      response.end(`hello ${request.url}`);
    });
  });
  return { port: await portOf(server), seen };
}

interface Setup {
  readonly dial: () => Duplex;
  readonly egress: Egress;
  readonly refused: Refusal[];
}

function open(policy: NetworkPolicy, outside: OutsideOptions = {}, headTimeoutMs?: number): Setup {
  const refused: Refusal[] = [];
  const egress = new Egress({
    policy,
    outside: new Outside({
      allowed: ["127.0.0.0/8"],
      resolve: async () => ["127.0.0.1"],
      ownAddresses: () => [],
      ...outside,
    }),
    onRefused: (refusal) => refused.push(refusal),
  });
  const proxy = new EgressProxy(egress, headTimeoutMs);
  opened.push(egress);
  const dial = (): Duplex => {
    const [inside, far] = duplexPair();
    for (const end of [inside, far]) end.on("error", () => {});
    proxy.accept({
      // The end of one side must not end the other.
      data: far.iterator({ destroyOnReturn: false }),
      write: (data) =>
        new Promise((resolve, reject) => far.write(data, (error) => (error ? reject(error) : resolve()))),
      end: async () => void far.end(),
      close: async () => {
        far.destroy();
        inside.destroy();
      },
    });
    return inside;
  };
  return { dial, egress, refused };
}

/** Everything that arrives, until a text is in it or the connection ends. */
async function read(stream: Duplex, until = "\u0000"): Promise<string> {
  let text = "";
  const collect = (chunk: Buffer): void => void (text += chunk.toString("latin1"));
  stream.on("data", collect);
  while (!text.includes(until) && !stream.readableEnded && !stream.destroyed)
    await Promise.race([once(stream, "data"), once(stream, "end"), once(stream, "close")]);
  stream.off("data", collect);
  return text;
}

async function ask({ dial }: Setup, request: string, until?: string): Promise<string> {
  const stream = dial();
  stream.write(request);
  return read(stream, until);
}

describe("plain HTTP", () => {
  test("a request with an absolute URL is forwarded, without hop headers and with the URL's host", async () => {
    const { port, seen } = await webServer();
    const setup = open("open");
    const answer = await ask(
      setup,
      `POST http://web.example:${port}/a?b HTTP/1.1\r\nHost: evil.example\r\nProxy-Connection: keep-alive\r\nConnection: x-drop\r\nX-Drop: 1\r\nX-Keep: 1\r\nContent-Length: 4\r\n\r\nbody`,
      "hello",
    );
    expect(answer).toContain("HTTP/1.1 200 OK");
    expect(answer).toContain("x-test: 1");
    expect(seen).toEqual([
      {
        url: "/a?b",
        body: "body",
        headers: { host: `web.example:${port}`, "x-keep": "1", "content-length": "4", connection: "close" },
      },
    ]);
  });

  test("a connection serves requests to several hosts, each under the policy", async () => {
    const { port, seen } = await webServer();
    const setup = open({ allow: ["a.example", "b.example"] });
    const stream = setup.dial();
    for (const [name, until] of [
      ["a.example", "hello /a.example"],
      ["evil.example", "not in allow"],
    ] as const) {
      stream.write(`GET http://${name}:${port}/${name} HTTP/1.1\r\nHost: a.example\r\n\r\n`);
      expect(await read(stream, until)).toContain(until);
    }
    expect(seen).toHaveLength(1);
    expect(setup.refused).toEqual([{ name: "evil.example", port, rule: "not in allow", address: undefined }]);
  });

  test.each([
    ["a request without a URL", "GET / HTTP/1.1\r\nHost: x\r\n\r\n", "400 Bad Request"],
    ["a URL of another protocol", "GET ftp://x/ HTTP/1.1\r\nHost: x\r\n\r\n", "400 Bad Request"],
    ["nonsense", "\u0016\u0003\u0001 nonsense\r\n\r\n", "400 "],
    ["a huge header", `GET http://x/ HTTP/1.1\r\nHost: x\r\nX: ${"a".repeat(20_000)}\r\n\r\n`, "400 "],
    ["CONNECT without a port", "CONNECT x HTTP/1.1\r\nHost: x\r\n\r\n", "400 "],
    ["CONNECT with an invalid port", "CONNECT x:99999 HTTP/1.1\r\nHost: x\r\n\r\n", "400 "],
    ["CONNECT to no host", "CONNECT a%b:443 HTTP/1.1\r\nHost: x\r\n\r\n", "502 "],
  ])("%s is answered with an error", async (_, request, answer) => {
    expect(await ask(open("open"), request)).toContain(answer);
  });

  test("a name that does not resolve is a 502 with the reason", async () => {
    const resolve = async () => Promise.reject(Object.assign(new Error("x"), { code: "ENOTFOUND" }));
    const answer = await ask(
      open("open", { resolve }),
      "GET http://no.example/ HTTP/1.1\r\nHost: x\r\n\r\n",
      "ENOTFOUND\n",
    );
    expect(answer).toContain("502 cannot resolve no.example: ENOTFOUND");
  });

  test("a program that sends no request is disconnected", async () => {
    const { dial, egress } = open("open", {}, 20);
    await once(dial().resume(), "close");
    await expect.poll(() => egress.figures.openConnections).toBe(0);
  });
});

describe("CONNECT", () => {
  const echo = (): Promise<number> =>
    portOf(createServer({ allowHalfOpen: true }, (socket) => void socket.on("error", () => {}).pipe(socket)));

  test("bytes go both ways, the end of one side is passed on, and bytes are counted", async () => {
    const port = await echo();
    const setup = open("open");
    const stream = setup.dial();
    stream.write(`CONNECT web.example:${port} HTTP/1.1\r\nHost: x\r\n\r\nfirst `);
    expect(await read(stream, "first")).toContain("HTTP/1.1 200 Connection established");
    stream.end("second");
    expect(await read(stream)).toBe("second");
    await expect.poll(() => setup.egress.figures.openConnections).toBe(0);
    expect(setup.egress.figures.sentBytes).toBeGreaterThan(50);
    expect(setup.egress.figures.receivedBytes).toBeGreaterThan(50);
  });

  test("a server that sends first is supported under every policy", async () => {
    const port = await portOf(createServer((socket) => socket.end("SSH-2.0-x\r\n")));
    const answer = await ask(
      open({ allow: ["git.example"] }),
      `CONNECT git.example:${port} HTTP/1.1\r\nHost: x\r\n\r\n`,
    );
    expect(answer).toMatch(/SSH-2.0-x\r\n$/);
  });

  test("a refused one gets 403 with the rule, and nothing is resolved or connected", async () => {
    const asked: string[] = [];
    const resolve = async (name: string) => {
      asked.push(name);
      return ["127.0.0.1"];
    };
    const setup = open({ allow: ["a.example"] }, { resolve });
    const answer = await ask(setup, "CONNECT secret.data.evil.example:443 HTTP/1.1\r\nHost: x\r\n\r\n");
    expect(answer).toContain("403 Blocked by the network policy (not in allow)");
    expect(asked).toEqual([]);
  });

  test("an address that is already checked is the one that is connected to: names are not resolved twice", async () => {
    const port = await echo();
    const answers = [["127.0.0.1"], ["169.254.169.254"]];
    const setup = open("open", { resolve: async () => answers.shift() ?? [] });
    const connect = `CONNECT rebind.example:${port} HTTP/1.1\r\nHost: x\r\n\r\n`;
    expect(await ask(setup, `${connect}one`, "one")).toContain("200 Connection established");
    expect(answers).toHaveLength(1);
    expect(await ask(setup, connect)).toContain("403 Blocked by the network policy (private address)");
    expect(setup.refused).toEqual([
      { name: "rebind.example", port, rule: "private address", address: "169.254.169.254" },
    ]);
  });

  test.each([
    "127.0.0.1",
    "localhost",
    "foo.localhost",
    "169.254.169.254",
    "10.0.0.1",
    "[::1]",
    "[::ffff:169.254.169.254]",
    "[fd00:ec2::254]",
    "[64:ff9b::7f00:1]",
    "0x7f000001",
    "2130706433",
    "0",
    "mapped.example",
    "own.example",
  ])("%s is private", async (host) => {
    const { nameserverResolver } = await import("../../src/egress/resolver.ts");
    const system = nameserverResolver();
    const names: Record<string, string> = { "mapped.example": "::ffff:10.0.0.1", "own.example": "203.0.113.9" };
    const setup = open("open", {
      allowed: [],
      ownAddresses: () => ["203.0.113.9"],
      resolve: async (name) => (names[name] === undefined ? system(name) : [names[name]]),
    });
    expect(await ask(setup, `CONNECT ${host}:80 HTTP/1.1\r\nHost: x\r\n\r\n`)).toMatch(
      /403 Blocked.*(private|of the server)/,
    );
  });

  test("a private network that the operator allows is reached, unless the policy denies it", async () => {
    const port = await echo();
    const connect = `CONNECT 127.0.0.1:${port} HTTP/1.1\r\nHost: x\r\n\r\nhi`;
    expect(await ask(open("open"), connect, "hi")).toContain("200 ");
    expect(await ask(open({ deny: ["127.0.0.0/8"] }), connect)).toContain("(deny 127.0.0.0/8)");
  });

  test("an open connection ends when the policy changes and forbids it; others stay", async () => {
    const port = await echo();
    const setup = open("open");
    const [first, second] = [setup.dial(), setup.dial()];
    for (const [stream, name] of [
      [first, "a.example"],
      [second, "b.example"],
    ] as const) {
      stream.write(`CONNECT ${name}:${port} HTTP/1.1\r\nHost: x\r\n\r\nhi`);
      await read(stream, "hi");
    }
    const ended = once(first.resume(), "close");
    setup.egress.setPolicy({ allow: ["b.example"] });
    await ended;
    second.write("still");
    expect(await read(second, "still")).toBe("still");
  });

  test("a program that disconnects ends the connection outside", async () => {
    const sockets: Socket[] = [];
    const port = await portOf(createServer((socket) => void sockets.push(socket.on("error", () => {}).resume())));
    const setup = open("open");
    const stream = setup.dial();
    stream.write(`CONNECT a.example:${port} HTTP/1.1\r\nHost: x\r\n\r\n`);
    await read(stream, "\r\n\r\n");
    await expect.poll(() => sockets.length).toBe(1);
    stream.destroy();
    await expect.poll(() => sockets[0]?.destroyed).toBe(true);
  });

  test("a sandbox has at most 192 connections", async () => {
    const port = await portOf(createServer((socket) => void socket.on("error", () => {}).resume()));
    const setup = open("open");
    const connect = `CONNECT a.example:${port} HTTP/1.1\r\nHost: x\r\n\r\n`;
    const all = await Promise.all(Array.from({ length: 192 }, () => ask(setup, connect, "\r\n\r\n")));
    expect(all.every((answer) => answer.includes("200 "))).toBe(true);
    expect(await ask(setup, connect)).toContain("502 the sandbox has 192 connections already");
  });
});

describe("a greeting that names another host than CONNECT", () => {
  const hello = (name: string): Buffer => {
    const host = Buffer.from(name, "latin1");
    const u16 = (value: number): Buffer => Buffer.from([value >> 8, value & 255]);
    const block = (size: 1 | 2, ...parts: Buffer[]): Buffer => {
      const bytes = Buffer.concat(parts);
      return Buffer.concat([size === 1 ? Buffer.from([bytes.length]) : u16(bytes.length), bytes]);
    };
    const extension = Buffer.concat([u16(0), block(2, block(2, Buffer.from([0]), block(2, host)))]);
    const body = Buffer.concat([
      Buffer.alloc(34, 3),
      block(1),
      block(2, u16(4865)),
      block(1, Buffer.from([0])),
      block(2, extension),
    ]);
    const message = Buffer.concat([Buffer.from([1, 0]), u16(body.length), body]);
    return Buffer.concat([Buffer.from([0x16, 3, 1]), u16(message.length), message]);
  };
  const http = (name: string): Buffer => Buffer.from(`GET / HTTP/1.1\r\nHost: ${name}\r\n\r\n`);

  const greet = async (
    policy: NetworkPolicy,
    greeting: Buffer,
  ): Promise<{ setup: Setup; received: () => Buffer; over: Promise<unknown> }> => {
    let bytes = Buffer.alloc(0);
    const port = await portOf(
      createServer(
        (socket) =>
          void socket.on("error", () => {}).on("data", (chunk) => (bytes = Buffer.concat([bytes, Buffer.from(chunk)]))),
      ),
    );
    const setup = open(policy);
    const stream = setup.dial();
    stream.write(`CONNECT a.example:${port} HTTP/1.1\r\nHost: x\r\n\r\n`);
    await read(stream, "\r\n\r\n");
    const over = once(stream.resume(), "close");
    // In pieces, as a hostile program would.
    stream.write(greeting.subarray(0, 7));
    await new Promise(setImmediate);
    stream.write(greeting.subarray(7));
    return { setup, received: () => bytes, over };
  };

  test.each([
    ["the same SNI", { allow: ["a.example"] }, hello("A.example")],
    ["another SNI that is allowed too", { allow: ["a.example", "*.cdn.example"] }, hello("x.cdn.example")],
    ["another SNI where names do not matter", "open", hello("b.example")],
    ["the same Host", { allow: ["a.example"] }, http("a.example:8443")],
    ["another protocol", { allow: ["a.example"] }, Buffer.from("SSH-2.0-client\r\n")],
  ] as const)("passes with %s", async (_, policy, greeting) => {
    const { received, setup } = await greet(policy, greeting);
    await expect.poll(() => received().equals(greeting)).toBe(true);
    expect(setup.refused).toEqual([]);
  });

  test.each([
    [
      "an SNI that is not allowed",
      { allow: ["a.example"] },
      hello("evil.example"),
      "SNI differs from a.example: not in allow",
    ],
    [
      "an SNI that is denied",
      { deny: ["evil.example"] },
      hello("evil.example"),
      "SNI differs from a.example: deny evil.example",
    ],
    [
      "an SNI that is no name",
      { allow: ["a.example"] },
      hello("a.example\u0000.evil"),
      "SNI differs from a.example: not in allow",
    ],
    [
      "a Host that is not allowed",
      { allow: ["a.example"] },
      http("evil.example"),
      "Host differs from a.example: not in allow",
    ],
    [
      "a ClientHello that cannot be read",
      { allow: ["a.example"] },
      Buffer.from([0x16, 3, 1, 0, 4, 9, 9, 9, 9]),
      "unreadable greeting",
    ],
  ] as const)("is cut off with %s, and nothing of it is sent", async (_, policy, greeting, rule) => {
    const { received, setup, over } = await greet(policy, greeting);
    await over;
    expect(received()).toHaveLength(0);
    expect(setup.refused).toMatchObject([{ rule }]);
  });
});
