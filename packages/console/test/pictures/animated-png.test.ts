import { expect, test } from "vitest";
import { encodeAnimation } from "./animated-png.ts";
import { decodePng, deflateRows, header, readChunks, writeChunks, type Pixels } from "./png.ts";

function picture(width: number, height: number, colour: (x: number, y: number) => readonly number[]): Pixels {
  const rows = Array.from({ length: height }, (_, y) => Array.from({ length: width }, (_each, x) => colour(x, y)));
  return { width, height, rgb: Buffer.from(rows.flat(2)) };
}

const grey = picture(20, 10, () => [128, 128, 128]);
const dot = picture(20, 10, (x, y) => (x === 7 && y === 4 ? [255, 0, 0] : [128, 128, 128]));

test("an encoded picture decodes unchanged", () => {
  const noise = picture(13, 9, (x, y) => [(x * 37 + y * 11) % 256, (x * y) % 256, 255 - x]);
  const png = writeChunks([
    header(13, 9),
    { type: "IDAT", data: deflateRows(noise) },
    { type: "IEND", data: Buffer.alloc(0) },
  ]);
  expect(decodePng(png)).toEqual(noise);
});

test("only the changed part of each frame is kept, and a frame without a change is shown longer", () => {
  const frames = [grey, grey, dot, grey].map((pixels) => ({ pixels, shownMs: 100 }));
  const chunks = readChunks(encodeAnimation(frames));
  expect(chunks.map(({ type }) => type)).toEqual([
    "IHDR",
    "acTL",
    "fcTL",
    "IDAT",
    "fcTL",
    "fdAT",
    "fcTL",
    "fdAT",
    "IEND",
  ]);
  const [first, second] = chunks.filter(({ type }) => type === "fcTL").map(({ data }) => data);
  expect(first?.readUInt16BE(20)).toBe(200);
  // Width, height, x, y.
  expect([4, 8, 12, 16].map((at) => second?.readUInt32BE(at))).toEqual([1, 1, 7, 4]);
  expect(decodePng(encodeAnimation(frames))).toEqual(grey);
});
