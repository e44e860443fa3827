import { once } from "node:events";
import fc from "fast-check";
import { expect, test } from "vitest";
import { Demultiplexer } from "../../../src/backends/docker/engine/demultiplex.ts";

function framed(stream: number, data: Uint8Array): Buffer {
  const header = Buffer.alloc(8);
  header.writeUInt8(stream, 0);
  header.writeUInt32BE(data.length, 4);
  return Buffer.concat([header, data]);
}

function cut(bytes: Buffer, sizes: readonly number[]): Buffer[] {
  const pieces: Buffer[] = [];
  let at = 0;
  for (const size of [...sizes, bytes.length]) {
    pieces.push(bytes.subarray(at, at + size));
    at += size;
  }
  return pieces;
}

test("streams are separated again, in whatever pieces they arrive", async () => {
  const piece = fc.record({ stream: fc.constantFrom(1, 2), data: fc.uint8Array({ maxLength: 40 }) });
  await fc.assert(
    fc.asyncProperty(fc.array(piece), fc.array(fc.integer({ min: 0, max: 20 })), async (pieces, sizes) => {
      const demultiplexer = new Demultiplexer();
      const reading = Array.fromAsync(demultiplexer.stdout);
      const whole = Buffer.concat(pieces.map(({ stream, data }) => framed(stream, data)));
      for (const chunk of cut(whole, sizes)) demultiplexer.write(chunk);
      demultiplexer.end();
      const stdout = pieces.filter(({ stream }) => stream === 1).map(({ data }) => data);
      expect(Buffer.concat((await reading) as Buffer[])).toEqual(Buffer.concat(stdout));
    }),
  );
});

test("only the end of stderr is kept", () => {
  const demultiplexer = new Demultiplexer();
  demultiplexer.write(framed(2, Buffer.from("x".repeat(20_000))));
  demultiplexer.write(framed(2, Buffer.from("last words")));
  expect(demultiplexer.lastWords).toHaveLength(8_000);
  expect(demultiplexer.lastWords.endsWith("xxlast words")).toBe(true);
});

test("an invalid header ends the stream", async () => {
  const demultiplexer = new Demultiplexer();
  const failed = once(demultiplexer, "error");
  demultiplexer.stdout.on("error", () => {});
  demultiplexer.write(Buffer.from("HTTP/1.1 400 Bad Request"));
  expect((await failed)[0]).toMatchObject({ code: "backend_unavailable" });
});
