import { EventEmitter } from "node:events";
import type { FastifyReply } from "fastify";
import { expect, onTestFinished, test, vi } from "vitest";
import { ConnectStream } from "../../../../src/gateway/e2b/connect/connect-stream.ts";

/** A response whose client reads, or does not. */
class Response extends EventEmitter {
  readonly destroyed = false;
  written = 0;
  writableNeedDrain = false;

  writeHead(): this {
    return this;
  }

  flushHeaders(): void {}

  write(): boolean {
    this.written += 1;
    return !this.writableNeedDrain;
  }
}

test("a client that does not read gets no more keep-alives", async () => {
  vi.useFakeTimers();
  onTestFinished(() => void vi.useRealTimers());
  const raw = new Response();
  const reply = { raw, hijack: () => {}, getHeaders: () => ({}) } as unknown as FastifyReply;
  new ConnectStream(reply).keepAlive({ keepalive: {} }, 1000);
  await vi.advanceTimersByTimeAsync(10_000);
  const before = raw.written;
  expect(before).toBeGreaterThan(4);
  raw.writableNeedDrain = true;
  await vi.advanceTimersByTimeAsync(60_000);
  expect(raw.written).toBe(before);
  expect(raw.listenerCount("drain")).toBe(0);
  raw.writableNeedDrain = false;
  await vi.advanceTimersByTimeAsync(10_000);
  expect(raw.written).toBeGreaterThan(before);
});
