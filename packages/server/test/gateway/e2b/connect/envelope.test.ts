import { Readable } from "node:stream";
import fc from "fast-check";
import { expect, test } from "vitest";
import { endFrame, messageFrame, readMessages } from "../../../../src/gateway/e2b/connect/envelope.ts";

const MAX_BYTES = 1000;

async function* pieces(all: Buffer, sizes: readonly number[]): AsyncGenerator<Uint8Array> {
  let at = 0;
  for (const size of sizes) {
    yield all.subarray(at, (at += size));
    if (at >= all.length) return;
  }
  yield all.subarray(at);
}

const read = (all: Buffer, sizes: readonly number[] = []): Promise<unknown[]> =>
  Array.fromAsync(readMessages(pieces(all, sizes), MAX_BYTES));

test("a message is five bytes and its JSON", () => {
  expect(messageFrame({ process: { pid: 13113 } })).toEqual(
    Buffer.concat([Buffer.from([0, 0, 0, 0, 0x19]), Buffer.from('{"process":{"pid":13113}}')]),
  );
  expect(endFrame()).toEqual(Buffer.from([2, 0, 0, 0, 2, 0x7b, 0x7d]));
});

test("messages are the same, however their frames are cut", async () => {
  const messages = fc.array(fc.dictionary(fc.string(), fc.string(), { maxKeys: 3 }), { maxLength: 5 });
  const sizes = fc.array(fc.integer({ min: 0, max: 40 }), { maxLength: 50 });
  await fc.assert(
    fc.asyncProperty(messages, sizes, async (sent, cuts) => {
      const received = await read(Buffer.concat(sent.map(messageFrame)), cuts);
      expect(received).toEqual(JSON.parse(JSON.stringify(sent)));
    }),
  );
});

test("a stream that ends anywhere inside a message is refused", async () => {
  const whole = messageFrame({ a: "b" });
  for (let length = 1; length < whole.length; length += 1) {
    await expect(read(whole.subarray(0, length))).rejects.toMatchObject({ code: "invalid_argument" });
  }
});

test("a message that is announced as 4 GB is refused by its head", async () => {
  const head = Buffer.from([0, 0xff, 0xff, 0xff, 0xff]);
  const endless = async function* (): AsyncGenerator<Uint8Array> {
    yield head;
    throw new Error("nothing more may be read");
  };
  const reading = Array.fromAsync(readMessages(endless(), MAX_BYTES));
  await expect(reading).rejects.toMatchObject({ code: "resource_exhausted" });
});

test("compressed messages, unknown flags and text that is not JSON are refused", async () => {
  const flagged = (flags: number): Buffer => Buffer.concat([Buffer.from([flags, 0, 0, 0, 2]), Buffer.from("{}")]);
  await expect(read(flagged(1))).rejects.toMatchObject({ code: "unimplemented" });
  await expect(read(flagged(3))).rejects.toMatchObject({ code: "unimplemented" });
  await expect(read(flagged(4))).rejects.toMatchObject({ code: "invalid_argument" });
  await expect(read(Buffer.from([0, 0, 0, 0, 1, 0x7b]))).rejects.toMatchObject({ code: "invalid_argument" });
});

test("nothing after an end frame is read", async () => {
  expect(await read(Buffer.concat([messageFrame({ a: 1 }), endFrame(), Buffer.from("rubbish")]))).toEqual([{ a: 1 }]);
});

test("a client that disconnects has canceled its call, and other errors stay what they are", async () => {
  const failing = async (error: Error): Promise<unknown> =>
    await Array.fromAsync(readMessages(Readable.from(brokenBy(error)), MAX_BYTES)).catch((thrown: unknown) => thrown);
  const aborted = Object.assign(new Error("aborted"), { code: "ECONNRESET" });
  expect(await failing(aborted)).toMatchObject({ name: "ConnectError", code: "canceled", cause: aborted });
  const bug = new TypeError("a bug");
  expect(await failing(bug)).toBe(bug);
});

async function* brokenBy(error: Error): AsyncGenerator<Uint8Array> {
  yield messageFrame({}).subarray(0, 3);
  throw error;
}
