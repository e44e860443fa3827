import fc from "fast-check";
import { expect, test } from "vitest";
import { OutputQueue } from "../../src/process/output-queue.ts";

const bytes = (text: string): Uint8Array => new TextEncoder().encode(text);
const TEXT = "abcdefghijklmnopqrstuvwxyz".repeat(4);

test("however often sockets repeat bytes, each byte comes once and in order", () => {
  // How far before the received output a socket begins, how much it sends, and in frames of which size.
  const sockets = fc.array(fc.record({ back: fc.nat(40), send: fc.nat(60), frame: fc.integer({ min: 1, max: 20 }) }));
  fc.assert(
    fc.property(sockets, (plan) => {
      const queue = new OutputQueue(0, false);
      let read = "";
      for (const { back, send, frame } of [...plan, { back: 10, send: TEXT.length + 10, frame: 7 }]) {
        const from = Math.max(0, (queue.received ?? 0) - back);
        queue.begin(from);
        for (let start = from; start < Math.min(from + send, TEXT.length); start += frame) {
          queue.push({ stream: "stdout", start, data: bytes(TEXT.slice(start, start + frame)) });
        }
        for (let chunk = queue.shift(); chunk !== undefined; chunk = queue.shift()) {
          read += new TextDecoder().decode(chunk.data);
          expect(chunk.offset).toBe(read.length);
        }
      }
      expect(read).toBe(TEXT);
    }),
  );
});

test("a gap is an error, except at the beginning and for a detached process", () => {
  const queue = new OutputQueue(5, false);
  queue.begin(9);
  expect(queue.taken).toBe(9);
  queue.push({ stream: "stdout", start: 9, data: bytes("x") });
  expect(() => queue.push({ stream: "stdout", start: 11, data: bytes("x") })).toThrow(
    "from byte 10 to 11 is no longer",
  );
  expect(() => queue.begin(12)).toThrow("from byte 10 to 12 is no longer");
  const detached = new OutputQueue(undefined, true);
  detached.push({ stream: "stdout", start: 3, data: bytes("x") });
  expect(detached.push({ stream: "stderr", start: 8, data: bytes("y") })).toBe(true);
  expect(detached.received).toBe(9);
});

test("only output that the reader has taken is acknowledged, in steps", () => {
  const queue = new OutputQueue(0, false);
  const told: number[] = [];
  const send = (offset: number): boolean => told.push(offset) > 0;
  queue.push({ stream: "stdout", start: 0, data: bytes("abcd") });
  queue.push({ stream: "stdout", start: 4, data: bytes("ef") });
  queue.acknowledge(1, send);
  queue.shift();
  queue.acknowledge(5, send);
  queue.acknowledge(4, () => false);
  queue.acknowledge(4, send);
  queue.acknowledge(1, send);
  expect(told).toEqual([4]);
  expect(queue.bytes).toBe(2);
});
