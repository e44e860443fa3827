import { once } from "node:events";
import { createServer, type ServerResponse } from "node:http";
import { afterEach, beforeEach, describe, expect, it, onTestFinished, vi } from "vitest";
import { openDriver } from "../../src/store/open-driver.ts";
import type { ObjectStore } from "../../src/store/store.ts";
import { type Clock, systemClock } from "../../src/support/clock.ts";
import { bytes, readAll } from "./store-contract.ts";

/** Longer than any request may take. */
const FOREVER_MS = 121_000;

/** The pauses between two tries take no time. */
const impatient: Clock = { ...systemClock, sleep: async (_, signal) => signal?.throwIfAborted() };

/** A bucket's server that accepts every request and answers none, by default. */
class HangingServer {
  requests = 0;
  unanswered = 0;
  /** Says whether it has answered. */
  answer: (answering: ServerResponse) => boolean = () => false;
  readonly #server = createServer((incoming, answering) => {
    incoming.resume();
    incoming.once("end", () => {
      this.requests += 1;
      if (!this.answer(answering)) this.unanswered += 1;
    });
  });

  async start(): Promise<string> {
    this.#server.listen(0, "127.0.0.1");
    await once(this.#server, "listening");
    const address = this.#server.address();
    return `http://127.0.0.1:${typeof address === "object" && address !== null ? address.port : 0}`;
  }

  stop(): void {
    this.#server.close();
    this.#server.closeAllConnections();
  }
}

beforeEach(() => {
  vi.stubEnv("AWS_ACCESS_KEY_ID", "key");
  vi.stubEnv("AWS_SECRET_ACCESS_KEY", "secret");
});
afterEach(() => {
  vi.useRealTimers();
  vi.unstubAllEnvs();
});

describe.each(["s3", "gs"])("a bucket at %s:// that hangs", (scheme) => {
  async function open(): Promise<{ server: HangingServer; store: ObjectStore }> {
    const server = new HangingServer();
    const endpoint = await server.start();
    onTestFinished(() => server.stop());
    const store = await openDriver(`${scheme}://bucket/prefix?endpoint=${endpoint}`, { clock: impatient });
    vi.useFakeTimers({ toFake: ["setTimeout", "clearTimeout"] });
    return { server, store };
  }

  /** Lets the time of each request pass once it has arrived, until the call has ended. */
  async function outlast<T>(server: HangingServer, calling: Promise<T>): Promise<T> {
    let seen = 0;
    const call = { isOver: false };
    const ended = calling.finally(() => (call.isOver = true));
    ended.catch(() => undefined);
    while (!call.isOver) {
      // A turn of the event loop: sockets do their work in it.
      await new Promise((resolve) => setImmediate(resolve));
      if (server.unanswered === seen) continue;
      seen = server.unanswered;
      vi.advanceTimersByTime(FOREVER_MS);
    }
    return await ended;
  }

  const calls: [string, number, (store: ObjectStore) => Promise<unknown>][] = [
    ["read of a blob", 8, (store) => readAll(store, "blob")],
    ["read of a range", 8, (store) => readAll(store, "blob", { start: 5, end: 9 })],
    ["read of a cell", 5, (store) => store.readCell("cell.json")],
    ["look at a blob", 5, (store) => store.stat("blob")],
    ["list", 5, (store) => Array.fromAsync(store.list(""))],
    ["write of a blob", 8, (store) => store.write("blob", [bytes("content")])],
    ["removal", 5, (store) => store.delete("blob")],
  ];
  it.each(calls)("a %s is retried, and then the store counts as unavailable", async (_, tries, call) => {
    const { server, store } = await open();
    await expect(outlast(server, call(store))).rejects.toMatchObject({
      code: "store_unavailable",
      message: expect.stringMatching(/no answer within \d+ s/) as unknown,
    });
    expect(server.requests).toBe(tries);
  });

  it("a read succeeds when the second try is answered", async () => {
    const { server, store } = await open();
    const reading = readAll(store, "blob");
    server.answer = (answering) => {
      if (server.requests === 1) return false;
      answering.writeHead(200, { etag: '"1"', "x-goog-generation": "1" }).end("content");
      return true;
    };
    expect((await outlast(server, reading)).toString()).toBe("content");
    expect(server.requests).toBe(2);
  });
});
