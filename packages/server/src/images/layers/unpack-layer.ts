import { spawn } from "node:child_process";
import { createHash } from "node:crypto";
import { createReadStream } from "node:fs";
import { mkdir, open, rename, rm, writeFile } from "node:fs/promises";
import { join } from "node:path";
import { PassThrough, Readable, Transform, type TransformCallback } from "node:stream";
import { pipeline } from "node:stream/promises";
import { createGunzip, createZstdDecompress } from "node:zlib";
import { cleanTar, type LayerNotes } from "./clean-tar.ts";
import { hasCode } from "../../support/errno.ts";
import type { ImageLimits } from "../image-limits.ts";
import { FILES_FOLDER, NOTES_FILE, type LayerRecord } from "./layer-record.ts";
import { LayerRefused } from "./layer-refused.ts";

/** Counts all layers of an image. */
export class UnpackMeter {
  readonly limits: ImageLimits;
  #entries = 0;
  #bytes = 0;

  constructor(limits: ImageLimits) {
    this.limits = limits;
  }

  count(bytes: number, entries: number): void {
    this.#bytes += bytes;
    this.#entries += entries;
    const { unpackedBytes, entries: most } = this.limits;
    if (this.#bytes > unpackedBytes) throw new LayerRefused(`unpacked, it has more than ${unpackedBytes} bytes`);
    if (this.#entries > most) throw new LayerRefused(`it has more than ${most} files`);
  }
}

export interface LayerToUnpack {
  /** The packed layer. */
  readonly path: string;
  readonly sizeBytes: number;
  /** The digest of its unpacked tar. */
  readonly diffId: string;
  /** The folder to create. */
  readonly into: string;
  readonly signal?: AbortSignal | undefined;
}

/** Unpacks a layer into a new folder, completely or not at all. Its content must have the digest of the config. */
export async function unpackLayer(layer: LayerToUnpack, meter: UnpackMeter): Promise<LayerRecord> {
  const building = `${layer.into}.${process.pid}.${Math.random().toString(36).slice(2)}.tmp`;
  const files = join(building, FILES_FOLDER);
  await mkdir(files, { recursive: true, mode: 0o755 });
  try {
    const notes: LayerNotes = { whiteouts: [], opaque: [], implicit: [] };
    const counter = new Counter(layer.sizeBytes, meter);
    const plain = new PassThrough();
    const tar = cleanTar(plain, notes, () => counter.entry());
    const reading = pipeline(
      createReadStream(layer.path, { highWaterMark: 1 << 18 }),
      ...(await unpacker(layer.path)),
      counter,
      plain,
      abortedBy(layer.signal),
    );
    reading.catch(() => {});
    try {
      await runTar(files, tar, layer.signal);
    } catch (error) {
      plain.destroy(error as Error);
      // A broken stream or a limit is the reason, not what follows from it.
      const cause = await reading.then(
        () => error,
        (reason: unknown) => reason,
      );
      throw error instanceof LayerRefused || hasCode(cause, "ERR_STREAM_PREMATURE_CLOSE") ? error : cause;
    }
    await reading;
    const found = counter.digest;
    if (found !== layer.diffId) throw new LayerRefused(`a layer has the content ${found} instead of ${layer.diffId}`);
    const record: LayerRecord = { diff_id: layer.diffId, bytes: counter.bytes, entries: counter.entries, ...notes };
    await writeFile(join(building, NOTES_FILE), JSON.stringify(record), { flush: true });
    await rename(building, layer.into);
    return record;
  } finally {
    await rm(building, { recursive: true, force: true });
  }
}

/** Hashes and counts what is unpacked, before anything of it is used. */
class Counter extends Transform {
  bytes = 0;
  entries = 0;
  readonly #hash = createHash("sha256");
  readonly #packedBytes: number;
  readonly #meter: UnpackMeter;

  constructor(packedBytes: number, meter: UnpackMeter) {
    super();
    this.#packedBytes = packedBytes;
    this.#meter = meter;
  }

  get digest(): string {
    return `sha256:${this.#hash.digest("hex")}`;
  }

  entry(): void {
    this.entries += 1;
    this.#meter.count(0, 1);
  }

  /** Some tools end an archive right after its last byte, without the zeros that belong there. */
  override _flush(done: TransformCallback): void {
    done(null, Buffer.alloc(1536 - (this.bytes % 512)));
  }

  override _transform(chunk: Buffer, _encoding: BufferEncoding, done: TransformCallback): void {
    this.bytes += chunk.length;
    try {
      this.#meter.count(chunk.length, 0);
      const { ratio, freeBytes } = this.#meter.limits;
      if (this.bytes > freeBytes && this.bytes > ratio * this.#packedBytes) {
        throw new LayerRefused(`a layer of ${this.#packedBytes} bytes unpacks to more than ${ratio} times as much`);
      }
      this.#hash.update(chunk);
      done(null, chunk);
    } catch (error) {
      done(error as Error);
    }
  }
}

/** By content: media types are often wrong. */
async function unpacker(path: string): Promise<Transform[]> {
  const file = await open(path);
  try {
    const { buffer } = await file.read(Buffer.alloc(4), 0, 4, 0);
    if (buffer[0] === 0x1f && buffer[1] === 0x8b) return [createGunzip({ chunkSize: 1 << 18 })];
    if (buffer.readUInt32LE(0) === 0xfd2fb528) return [createZstdDecompress({ chunkSize: 1 << 18 })];
    return [];
  } finally {
    await file.close();
  }
}

/** GNU tar creates the files: it keeps owners, modes, times, hard links and attributes, and is fast. */
async function runTar(into: string, content: AsyncIterable<Buffer>, signal: AbortSignal | undefined): Promise<void> {
  const attributes = ["--xattrs", "--xattrs-include=user.*", "--xattrs-include=security.capability"];
  const child = spawn(
    "tar",
    ["-x", "-p", "--numeric-owner", "--delay-directory-restore", ...attributes, "-C", into, "-f", "-"],
    { stdio: ["pipe", "ignore", "pipe"] },
  );
  let said = "";
  child.stderr.setEncoding("utf8").on("data", (text: string) => (said = (said + text).slice(-2000)));
  const ended = new Promise<number | null>((resolve, reject) => child.once("error", reject).once("close", resolve));
  ended.catch(() => {});
  try {
    await pipeline(Readable.from(content, { objectMode: false }), child.stdin, abortedBy(signal));
  } catch (error) {
    // A tar that ended by itself has said why.
    if ((error as NodeJS.ErrnoException).code !== "EPIPE") {
      child.kill("SIGKILL");
      await ended.catch(() => {});
      throw error;
    }
  }
  const code = await ended;
  if (code === 0) return;
  const reason =
    said
      .trim()
      .split("\n")
      .find((line) => line !== "") ?? `it ended with ${code}`;
  throw new Error(`tar could not unpack a layer: ${reason}`);
}

function abortedBy(signal: AbortSignal | undefined): { signal?: AbortSignal } {
  return signal === undefined ? {} : { signal };
}
