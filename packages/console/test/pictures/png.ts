import { deflateSync, crc32, inflateSync } from "node:zlib";

const SIGNATURE = Buffer.from([0x89, 0x50, 0x4e, 0x47, 0x0d, 0x0a, 0x1a, 0x0a]);

/** A picture as its pixels: rows from the top, red, green and blue. */
export interface Pixels {
  readonly width: number;
  readonly height: number;
  readonly rgb: Buffer;
}

export interface Chunk {
  readonly type: string;
  readonly data: Buffer;
}

export function readChunks(png: Buffer): Chunk[] {
  if (!png.subarray(0, 8).equals(SIGNATURE)) throw new Error("This is no PNG.");
  const chunks: Chunk[] = [];
  for (let at = 8; at < png.length;) {
    const length = png.readUInt32BE(at);
    chunks.push({ type: png.toString("latin1", at + 4, at + 8), data: png.subarray(at + 8, at + 8 + length) });
    at += 12 + length;
  }
  return chunks;
}

export function writeChunks(chunks: readonly Chunk[]): Buffer {
  const parts = chunks.flatMap(({ type, data }) => {
    const typed = Buffer.concat([Buffer.from(type, "latin1"), data]);
    const [length, sum] = [Buffer.alloc(4), Buffer.alloc(4)];
    length.writeUInt32BE(data.length);
    sum.writeUInt32BE(crc32(typed));
    return [length, typed, sum];
  });
  return Buffer.concat([SIGNATURE, ...parts]);
}

export function header(width: number, height: number): Chunk {
  const data = Buffer.alloc(13);
  data.writeUInt32BE(width, 0);
  data.writeUInt32BE(height, 4);
  // Eight bits of each of three colours.
  data.set([8, 2], 8);
  return { type: "IHDR", data };
}

/** Decodes a picture as browsers write them: 8 bits, with or without transparency, not interlaced. */
export function decodePng(png: Buffer): Pixels {
  const chunks = readChunks(png);
  const head = chunks.find(({ type }) => type === "IHDR")?.data ?? Buffer.alloc(13);
  const [width, height] = [head.readUInt32BE(0), head.readUInt32BE(4)];
  const step = head[9] === 6 ? 4 : 3;
  if (head[8] !== 8 || (head[9] !== 2 && head[9] !== 6) || head[12] !== 0) throw new Error("No such PNG is read here.");
  const packed = Buffer.concat(chunks.filter(({ type }) => type === "IDAT").map(({ data }) => data));
  const raw = unfilter(inflateSync(packed), width * step, height, step);
  if (step === 3) return { width, height, rgb: raw };
  const rgb = Buffer.alloc(width * height * 3);
  for (let from = 0, to = 0; from < raw.length; from += 4, to += 3) raw.copy(rgb, to, from, from + 3);
  return { width, height, rgb };
}

function unfilter(filtered: Buffer, rowBytes: number, height: number, step: number): Buffer {
  const out = Buffer.alloc(rowBytes * height);
  for (let row = 0; row < height; row += 1) {
    const kind = filtered[row * (rowBytes + 1)] ?? 0;
    const [from, to] = [row * (rowBytes + 1) + 1, row * rowBytes];
    for (let at = 0; at < rowBytes; at += 1) {
      const left = at < step ? 0 : (out[to + at - step] ?? 0);
      const up = row === 0 ? 0 : (out[to + at - rowBytes] ?? 0);
      const corner = row === 0 || at < step ? 0 : (out[to + at - rowBytes - step] ?? 0);
      out[to + at] = (filtered[from + at] ?? 0) + predict(kind, left, up, corner);
    }
  }
  return out;
}

function predict(kind: number, left: number, up: number, corner: number): number {
  if (kind === 1) return left;
  if (kind === 2) return up;
  if (kind === 3) return (left + up) >> 1;
  return kind === 4 ? paeth(left, up, corner) : 0;
}

function paeth(left: number, up: number, corner: number): number {
  const estimate = left + up - corner;
  const [toLeft, toUp, toCorner] = [left, up, corner].map((value) => Math.abs(estimate - value));
  if ((toLeft ?? 0) <= (toUp ?? 0) && (toLeft ?? 0) <= (toCorner ?? 0)) return left;
  return (toUp ?? 0) <= (toCorner ?? 0) ? up : corner;
}

/** Each byte as the difference from the one above, which suits pages and text. */
export function deflateRows({ width, height, rgb }: Pixels): Buffer {
  const rowBytes = width * 3;
  const filtered = Buffer.alloc((rowBytes + 1) * height);
  for (let row = 0; row < height; row += 1) {
    const to = row * (rowBytes + 1);
    filtered[to] = 2;
    for (let at = 0; at < rowBytes; at += 1) {
      const up = row === 0 ? 0 : (rgb[(row - 1) * rowBytes + at] ?? 0);
      filtered[to + 1 + at] = (rgb[row * rowBytes + at] ?? 0) - up;
    }
  }
  return deflateSync(filtered, { level: 9 });
}
