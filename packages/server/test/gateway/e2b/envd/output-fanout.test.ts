import { expect, test } from "vitest";
import type { OutputChunk } from "../../../../src/backends/backend.ts";
import { OutputFanout, type OutputReader } from "../../../../src/gateway/e2b/envd/output-fanout.ts";
import type { ManagedProcess } from "../../../../src/manager/processes/managed-process.ts";
import { eventually } from "../../../../../../test/kit/eventually.ts";

const NEVER = new AbortController().signal;

/** Output of one process: a number of chunks of one byte, then its end or a failure. */
class Output {
  readonly acknowledged: number[] = [];
  readonly readers: number[] = [];
  readonly process: ManagedProcess;

  constructor(chunks: number, failure?: Error) {
    const { readers } = this;
    const follow = async function* ({
      from,
      signal,
    }: {
      from: number;
      signal: AbortSignal;
    }): AsyncGenerator<OutputChunk> {
      readers.push(from);
      for (let offset = from; offset < chunks; offset += 1) {
        if (signal.aborted) return;
        yield { stream: "stdout", offset, data: Uint8Array.of(offset % 256) };
      }
      if (failure !== undefined) throw failure;
    };
    const acknowledge = (offset: number): void => void this.acknowledged.push(offset);
    this.process = { follow, acknowledge } as unknown as ManagedProcess;
  }
}

async function readAll(reader: OutputReader): Promise<{ bytes: number; end: unknown }> {
  for (let bytes = 0; ; bytes += 1) {
    const next = await reader.next(NEVER);
    if (typeof next !== "object") return { bytes, end: next };
  }
}

test("every reader gets all output, in pieces of a bounded size", async () => {
  const data = Buffer.from("0123456789");
  const follow = async function* (): AsyncGenerator<OutputChunk> {
    yield { stream: "stderr", offset: 0, data };
  };
  const process = { follow, acknowledge: () => {} } as unknown as ManagedProcess;
  const fanout = new OutputFanout(process, 4);
  const readers = [fanout.attach(0), fanout.attach(0)];
  for (const reader of readers) {
    const pieces = [await reader.next(NEVER), await reader.next(NEVER), await reader.next(NEVER)];
    expect(pieces).toEqual(
      ["0123", "4567", "89"].map((text) => ({ stream: "stderr", data: Buffer.from(text).toString("base64") })),
    );
    expect(await reader.next(NEVER)).toBe("exited");
  }
});

test("a process waits for its only reader, however slow it is", async () => {
  const output = new Output(200);
  const reader = new OutputFanout(output.process, 4, 1).attach(0);
  await eventually("the reader is full", () => reader.isFull);
  const before = output.acknowledged.length;
  // At most these chunks of 32 KiB are in memory for a client that does not read.
  expect(before).toBeLessThan(8);
  expect(await readAll(reader)).toEqual({ bytes: 200, end: "exited" });
  expect(output.acknowledged.at(-1)).toBe(200);
});

test("a reader that delays another one is disconnected", async () => {
  const output = new Output(200);
  const fanout = new OutputFanout(output.process, 4, 20);
  const [slow, fast] = [fanout.attach(0), fanout.attach(0)];
  expect(await readAll(fast)).toEqual({ bytes: 200, end: "exited" });
  const { bytes, end } = await readAll(slow);
  expect(end).toBe("cut");
  expect(bytes).toBeLessThan(100);
});

test("the reading stops when the last reader leaves, and starts again with the next one", async () => {
  const output = new Output(200);
  const fanout = new OutputFanout(output.process, 4);
  const first = fanout.attach(0);
  await eventually("it is read", () => first.isFull);
  first.leave();
  const second = fanout.attach(150);
  expect(await readAll(second)).toEqual({ bytes: 50, end: "exited" });
  expect(output.readers).toEqual([0, 150]);
});

test("a sandbox that ends disconnects its readers, and a reader that left does not wait", async () => {
  const reader = new OutputFanout(new Output(3, new Error("the sandbox has ended")).process, 4).attach(0);
  expect(await readAll(reader)).toEqual({ bytes: 3, end: "cut" });
  const left = new AbortController();
  const endless = { follow: () => ({ [Symbol.asyncIterator]: () => ({ next: () => new Promise(() => {}) }) }) };
  const waiting = new OutputFanout(endless as unknown as ManagedProcess, 4).attach(0).next(left.signal);
  left.abort();
  expect(await waiting).toBeUndefined();
});
