import fc from "fast-check";
import { expect, test } from "vitest";
import { encodeFrame, FrameDecoder, type Frame } from "../../../src/backends/agent/frame-decoder.ts";
import { OutputReader } from "../../../src/backends/agent/output-reader.ts";
import { MalformedFrameError, PayloadReader, PayloadWriter } from "../../../src/backends/agent/payload.ts";

const frames = fc.array(
  fc.record({ type: fc.nat(255), request: fc.nat(0xffff_ffff), payload: fc.uint8Array({ maxLength: 300 }) }),
  { maxLength: 20 },
);

test("frames are decoded unchanged, however the bytes are cut", () => {
  fc.assert(
    fc.property(frames, fc.array(fc.integer({ min: 1, max: 50 }), { minLength: 1, maxLength: 20 }), (sent, cuts) => {
      const bytes = Buffer.concat(sent.map(({ type, request, payload }) => encodeFrame(type, request, payload)));
      const decoder = new FrameDecoder({ chunksLast: true });
      const received: Frame[] = [];
      for (let at = 0, turn = 0; at < bytes.length; turn++) {
        const end = at + cuts[turn % cuts.length]!;
        received.push(...decoder.push(bytes.subarray(at, end)));
        at = end;
      }
      expect(received.map((frame) => ({ ...frame, payload: [...frame.payload] }))).toEqual(
        sent.map((frame) => ({ ...frame, payload: [...frame.payload], lasts: true })),
      );
    }),
  );
});

test("short-lived buffers are copied by their keeper, and large frames are complete however they are cut", () => {
  const sent = [300_000, 10, 200_000, 130_000].map((length, index) => Buffer.alloc(length, index + 1));
  const bytes = Buffer.concat(sent.map((payload, index) => encodeFrame(0x80, index + 1, payload)));
  const decoder = new FrameDecoder({ chunksLast: false });
  const memory = Buffer.alloc(70_001);
  const kept: Buffer[] = [];
  for (let at = 0; at < bytes.length; at += memory.length) {
    const length = bytes.copy(memory, 0, at);
    for (const { payload, lasts } of decoder.push(memory.subarray(0, length)))
      kept.push(new PayloadReader(payload, lasts).rest());
    memory.fill(0xff);
  }
  expect(kept.map((payload, index) => payload.equals(sent[index] as Buffer))).toEqual([true, true, true, true]);
});

test("a megabyte in single bytes is held once", () => {
  const whole = encodeFrame(0x80, 1, Buffer.alloc(1_000_000, 7));
  const decoder = new FrameDecoder({ chunksLast: true });
  const before = process.memoryUsage().heapUsed;
  const received: Frame[] = [];
  for (const byte of whole) received.push(...decoder.push(Buffer.of(byte)));
  expect(received[0]?.payload.length).toBe(1_000_000);
  expect(process.memoryUsage().heapUsed - before).toBeLessThan(200 << 20);
});

test("reading any bytes as any fields gives values or a MalformedFrameError", () => {
  const fields = ["u8", "u32", "i32", "u64", "u64Exact", "i64", "string", "rest", "end"] as const;
  fc.assert(
    fc.property(
      fc.uint8Array({ maxLength: 64 }),
      fc.array(fc.constantFrom(...fields), { maxLength: 12 }),
      (bytes, names) => {
        const reader = new PayloadReader(Buffer.from(bytes));
        try {
          for (const name of names) reader[name]();
          reader.list(() => reader.u32());
        } catch (thrown) {
          expect(thrown).toBeInstanceOf(MalformedFrameError);
        }
      },
    ),
  );
});

test("fields are decoded unchanged", () => {
  fc.assert(
    fc.property(
      fc.nat(255),
      fc.nat(),
      fc.maxSafeNat(),
      fc.bigInt({ min: -(2n ** 63n), max: 2n ** 63n - 1n }),
      fc.string(),
      (...values) => {
        const [byte, word, long, signed, text] = values;
        const reader = new PayloadReader(
          new PayloadWriter().u8(byte).u32(word).u64(long).i64(signed).string(text).finish(),
        );
        expect([reader.u8(), reader.u32(), reader.u64(), reader.i64(), reader.string()]).toEqual([
          byte,
          word,
          long,
          signed,
          Buffer.from(text).toString(),
        ]);
        reader.end();
      },
    ),
  );
});

test("many small chunks of one stream become few, in order and complete", () => {
  const reader = new OutputReader(0);
  reader.startAt(0, 100_000);
  for (let offset = 0; offset < 50_000; offset++)
    reader.push({ stream: "stdout", offset, data: Buffer.of(offset & 255) });
  let [count, end] = [0, 0];
  for (let chunk = reader.take(); chunk !== undefined; chunk = reader.take()) {
    expect(chunk.offset).toBe(end);
    for (const [index, byte] of chunk.data.entries())
      if (byte !== ((end + index) & 255)) throw new Error("another byte");
    end += chunk.data.length;
    count += 1;
  }
  expect(end).toBe(50_000);
  expect(count).toBeLessThan(5_000);
});
