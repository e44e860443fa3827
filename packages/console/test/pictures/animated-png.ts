import { deflateRows, header, writeChunks, type Chunk, type Pixels } from "./png.ts";

export interface Frame {
  readonly pixels: Pixels;
  readonly shownMs: number;
}

interface Part {
  readonly x: number;
  readonly y: number;
  readonly pixels: Pixels;
}

/** An animated PNG that repeats. Each frame contains only the changed part. */
export function encodeAnimation(frames: readonly Frame[]): Buffer {
  const [first] = frames;
  if (first === undefined) throw new Error("There is nothing to show.");
  const { width, height } = first.pixels;
  const shown: { part: Part; shownMs: number }[] = [];
  let before: Pixels | undefined;
  for (const { pixels, shownMs } of frames) {
    if (pixels.width !== width || pixels.height !== height) throw new Error("Frames have one size.");
    const part = before === undefined ? { x: 0, y: 0, pixels } : changedPart(before, pixels);
    const last = shown.at(-1);
    if (part === undefined && last !== undefined) last.shownMs += shownMs;
    else if (part !== undefined) shown.push({ part, shownMs });
    before = pixels;
  }

  const chunks: Chunk[] = [header(width, height), animationControl(shown.length)];
  let sequence = 0;
  for (const [at, { part, shownMs }] of shown.entries()) {
    chunks.push(frameControl((sequence += 1) - 1, part, shownMs));
    const data = deflateRows(part.pixels);
    if (at === 0) chunks.push({ type: "IDAT", data });
    else chunks.push({ type: "fdAT", data: Buffer.concat([number32((sequence += 1) - 1), data]) });
  }
  return writeChunks([...chunks, { type: "IEND", data: Buffer.alloc(0) }]);
}

/** The smallest rectangle that contains all differences; undefined if there are none. */
function changedPart(before: Pixels, after: Pixels): Part | undefined {
  const { width, height, rgb } = after;
  let [top, bottom, left, right] = [height, -1, width, -1];
  for (let y = 0; y < height; y += 1) {
    const row = y * width * 3;
    if (rgb.compare(before.rgb, row, row + width * 3, row, row + width * 3) === 0) continue;
    top = Math.min(top, y);
    bottom = y;
    const same = (x: number): boolean => rgb.readUIntBE(row + x * 3, 3) === before.rgb.readUIntBE(row + x * 3, 3);
    let x = 0;
    while (x < left && same(x)) x += 1;
    left = Math.min(left, x);
    x = width - 1;
    while (x > right && same(x)) x -= 1;
    right = Math.max(right, x);
  }
  if (bottom === -1) return undefined;
  return { x: left, y: top, pixels: crop(after, left, top, right - left + 1, bottom - top + 1) };
}

function crop({ width, rgb }: Pixels, x: number, y: number, partWidth: number, partHeight: number): Pixels {
  const out = Buffer.alloc(partWidth * partHeight * 3);
  for (let row = 0; row < partHeight; row += 1) {
    const from = ((y + row) * width + x) * 3;
    rgb.copy(out, row * partWidth * 3, from, from + partWidth * 3);
  }
  return { width: partWidth, height: partHeight, rgb: out };
}

function animationControl(frames: number): Chunk {
  return { type: "acTL", data: Buffer.concat([number32(frames), number32(0)]) };
}

function frameControl(sequence: number, { x, y, pixels }: Part, shownMs: number): Chunk {
  const delay = Buffer.alloc(6);
  delay.writeUInt16BE(Math.min(65_535, Math.round(shownMs)), 0);
  delay.writeUInt16BE(1000, 2);
  const places = [sequence, pixels.width, pixels.height, x, y].map(number32);
  return { type: "fcTL", data: Buffer.concat([...places, delay]) };
}

function number32(value: number): Buffer {
  const buffer = Buffer.alloc(4);
  buffer.writeUInt32BE(value);
  return buffer;
}
