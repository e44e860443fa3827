import { randomUUID } from "node:crypto";
import { once } from "node:events";
import { type IncomingMessage, request } from "node:http";
import { connect, type Socket } from "node:net";
import { describe, expect, onTestFinished, test } from "vitest";
import type { Principal } from "../../../src/gateway/access/principal.ts";
import { ANONYMOUS, TOKEN_HOLDER } from "../../../src/gateway/access/principal.ts";
import { Places } from "../../../src/gateway/websocket/places.ts";
import { eventually } from "../../../../../test/kit/eventually.ts";
import { startTestServer, type TestServer } from "../../../../../test/kit/server/test-server.ts";

const KEY = "the-only-key";
const WITH_KEY = { headers: { authorization: `Bearer ${KEY}` } };

/** A client that asks for a WebSocket and then does nothing by itself: it answers no close, and closes nothing. */
class DumbClient {
  readonly tcp: Socket;
  #received = "";

  constructor({ httpUrl }: TestServer, path: string) {
    const { hostname, port } = new URL(httpUrl);
    this.tcp = connect({ host: hostname, port: Number(port), allowHalfOpen: true }).on("error", () => {});
    this.tcp.on("data", (data: Buffer) => (this.#received += data.toString("latin1")));
    const headers = "Upgrade: websocket\r\nConnection: Upgrade\r\nSec-WebSocket-Version: 13";
    this.tcp.write(
      `GET ${path} HTTP/1.1\r\nHost: localhost\r\n${headers}\r\nSec-WebSocket-Key: AAAAAAAAAAAAAAAAAAAAAA==\r\n\r\n`,
    );
    onTestFinished(() => void this.tcp.destroy());
  }

  get received(): string {
    return this.#received;
  }

  async status(): Promise<number> {
    await eventually("an answer", () => this.#received.includes("\r\n\r\n"));
    return Number(this.#received.split(" ", 2)[1]);
  }
}

async function clientsOf({ httpUrl }: TestServer): Promise<number> {
  const metrics = await (await fetch(`${httpUrl}/metrics`, WITH_KEY)).text();
  return Number(/^sandboxer_clients (\d+)/m.exec(metrics)?.[1]);
}

describe("1,050 connections without a valid credential", () => {
  test.each([
    ["without a credential", "", 401],
    ["with a made-up token", "?sandbox_token=wrong", 101],
  ])("%s keep nobody with a key out", async (_what, query, status) => {
    const server = await startTestServer({ apiKeys: [KEY], maxClients: 1000 });
    const strangers = Array.from({ length: 1050 }, () => new DumbClient(server, `/attach/${randomUUID()}${query}`));
    // Whether the strangers are being looked at, or were refused already.
    const { client } = await server.create({}, WITH_KEY);
    const statuses = await Promise.all(strangers.map((each) => each.status()));
    // The places for tokens that are not looked at yet may be taken, by tokens.
    expect(new Set(statuses).difference(new Set([status, 429]))).toEqual(new Set());
    await server.create({}, WITH_KEY);
    expect(await clientsOf(server)).toBe(2);
    expect(await client.run("bash", "echo on").until("EXECUTION_DONE")).toContain("out:on\n");
  });
});

describe("a refused client that does not answer the close", () => {
  test.each([
    ["a wrong token", true, "PERMISSION_DENIAL_ERROR"],
    ["an unknown id", false, "NOT_FOUND"],
  ])("%s: learns why, does not count, and is disconnected within 2 s", async (_what, known, said) => {
    const server = await startTestServer({ apiKeys: [KEY] });
    const { client, id } = await server.create({ enable_checkpoint: true }, WITH_KEY);
    await client.send({ action: "checkpoint" }).untilClosed();
    await eventually("only the stranger is left", () => server.sockets.size === 0);
    const stranger = new DumbClient(server, `/attach/${known ? id : randomUUID()}?sandbox_token=wrong`);
    await eventually("the reason", () => stranger.received.includes(said));
    const begun = performance.now();
    // Its close frame, with the code.
    const code = Buffer.alloc(2);
    code.writeUInt16BE(known ? 4000 : 1011);
    await eventually("the close code", () => stranger.received.includes(`\x88\x02${code.toString("latin1")}`));
    expect(await clientsOf(server)).toBe(0);
    const port = stranger.tcp.localPort;
    await eventually("it is cut", () => ![...server.sockets].some(({ remotePort }) => remotePort === port));
    expect(performance.now() - begun).toBeLessThan(2_000);
  });

  test("an HTTP refusal is cut as well", async () => {
    const server = await startTestServer({ apiKeys: [KEY] });
    const stranger = new DumbClient(server, `/attach/${randomUUID()}`);
    expect(await stranger.status()).toBe(401);
    const begun = performance.now();
    await eventually("it is cut", () => server.sockets.size === 0);
    expect(performance.now() - begun).toBeLessThan(2_000);
  });

  test("nothing that it sends is parsed, before and after it was refused", async () => {
    const server = await startTestServer({ apiKeys: [KEY] });
    const stranger = new DumbClient(server, `/attach/${randomUUID()}?sandbox_token=wrong`);
    // A frame that breaks the protocol: the parser answers with 1002.
    stranger.tcp.write(Buffer.from([0x83, 0x80, 0, 0, 0, 0]));
    await eventually("the reason", () => stranger.received.includes("NOT_FOUND"));
    stranger.tcp.write(Buffer.from([0x83, 0x80, 0, 0, 0, 0]));
    await eventually("the end", () => stranger.tcp.readableEnded);
    expect(stranger.received.endsWith("\x88\x02\x03\xf3")).toBe(true);
  });
});

describe("limits of one caller", () => {
  test("a key has a limited number of WebSockets, and the refusal names the limit", async () => {
    const server = await startTestServer({ apiKeys: [KEY, "another"], maxClients: 10, maxClientsPerKey: 2 });
    const { client } = await server.create({}, WITH_KEY);
    await server.create({}, WITH_KEY);
    const refused = await fetchUpgrade(server, "/create", WITH_KEY.headers);
    expect(refused).toMatchObject({
      status: 429,
      error: {
        code: "limit_reached",
        message: "There are already 2 WebSockets of one key, which is the limit.",
        hint: expect.stringContaining("--max-clients-per-key"),
        retryable: true,
        details: { limit: "max_clients_per_key", most: 2 },
      },
    });
    await server.create({}, { headers: { authorization: "Bearer another" } });
    await client.leave();
    await eventually("there is room", async () => (await clientsOf(server)) === 2);
    await server.create({}, WITH_KEY);
  });

  test("an address has only so many WebSockets with tokens", async () => {
    const server = await startTestServer({ apiKeys: [KEY], maxClientsPerAddress: 1 });
    const first = await server.create({}, WITH_KEY);
    const second = await server.create({}, WITH_KEY);
    await Promise.all([first.client.leave(), second.client.leave()]);
    const held = server.attach(first.id, `?sandbox_token=${first.token}`);
    await held.until("RUNNING");
    const path = `/attach/${second.id}?sandbox_token=${second.token}`;
    expect(await fetchUpgrade(server, path)).toMatchObject({
      status: 429,
      error: { code: "limit_reached", details: { limit: "max_clients_per_address", most: 1 } },
    });
    // With a key it is that key's.
    expect(await server.attach(second.id, "", WITH_KEY).outcome()).toEqual(["RUNNING"]);
  });

  test("a full server answers with the body of HTTP errors", async () => {
    const server = await startTestServer({ store: null, maxClients: 1 });
    await server.create();
    expect(await fetchUpgrade(server, "/create")).toMatchObject({
      status: 503,
      error: { code: "limit_reached", retryable: true, details: { limit: "max_clients", most: 1 } },
    });
  });

  test("programs on the machine of a server without keys have all its places", () => {
    const places = new Places({ maxClients: 1000 });
    for (let count = 0; count < 1000; count += 1)
      places.take({ who: ANONYMOUS, address: count % 2 === 0 ? "127.0.0.1" : "::ffff:127.0.0.1", onTrial: false });
    expect(places.taken).toBe(1000);
  });

  test("by default a caller leaves room for others, and only used places count", () => {
    const places = new Places({ maxClients: 10 });
    const key: Principal = { kind: "key", id: "key:a", name: "a", scopes: [] };
    const most = (newcomer: Parameters<Places["take"]>[0]): number => {
      const taken = [];
      try {
        for (;;) taken.push(places.take(newcomer));
      } catch {
        for (const place of taken) {
          place.leave();
          place.leave();
        }
        return taken.length;
      }
    };
    expect(most({ who: key, address: "10.0.0.1", onTrial: false })).toBe(8);
    expect(most({ who: TOKEN_HOLDER, address: "10.0.0.1", onTrial: true })).toBe(5);
    expect(most({ who: ANONYMOUS, address: "10.0.0.1", onTrial: false })).toBe(5);
    expect(places.taken).toBe(0);
    const place = places.take({ who: TOKEN_HOLDER, address: "10.0.0.1", onTrial: true });
    expect(places.taken).toBe(0);
    place.admit();
    expect(places.taken).toBe(1);
    place.leave();
    place.admit();
    expect(places.taken).toBe(0);
  });
});

async function fetchUpgrade(server: TestServer, path: string, headers: Record<string, string> = {}) {
  const upgrade = { connection: "Upgrade", upgrade: "websocket" };
  const sent = request(server.httpUrl + path, { headers: { ...upgrade, ...headers } }).end();
  const [response] = (await once(sent, "response")) as [IncomingMessage];
  const body = JSON.parse(Buffer.concat(await response.toArray()).toString()) as { error: Record<string, unknown> };
  return { status: response.statusCode, error: body.error };
}
