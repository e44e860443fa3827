import { randomUUID } from "node:crypto";
import type { Clock } from "../../support/clock.ts";
import { type Chunks, ObjectNotFoundError, type ReadOptions, type WriteOptions, type WriteOutcome } from "../store.ts";
import type { BucketApi, PutOptions, Retry } from "./bucket-api.ts";
import { BucketError, hasFailed } from "./bucket-error.ts";
import { parts } from "./parts.ts";
import { BLOB_REQUESTS, delayMs, retryUnclear } from "./retry.ts";

/** Blobs in a bucket: small ones in one request, large ones in parts; both become visible as a whole. */
export class BucketBlobs {
  readonly #api: BucketApi;
  readonly #clock: Clock;
  readonly #partBytes: number;

  constructor(api: BucketApi, clock: Clock, partBytes: number) {
    this.#api = api;
    this.#clock = clock;
    this.#partBytes = partBytes;
  }

  /** Resumes where a lost connection ended, and only with the same version of the blob. */
  async *read(name: string, options: ReadOptions): AsyncGenerator<Uint8Array, void, undefined> {
    const { start = 0, end, signal, reuseMemory = false } = options;
    if (end !== undefined && end <= start) {
      if ((await this.#retrying(signal)(() => this.#api.head(name))) === undefined) throw new ObjectNotFoundError(name);
      return;
    }
    yield* evenChunks(this.#pieces(name, start, end, signal), reuseMemory);
  }

  async *#pieces(
    name: string,
    start: number,
    end: number | undefined,
    signal: AbortSignal | undefined,
  ): AsyncGenerator<Uint8Array, void, undefined> {
    let position = start;
    let version: string | undefined;
    let failures = 0;
    while (position < (end ?? Number.POSITIVE_INFINITY)) {
      const range = { start: position, end, ...(version === undefined ? {} : { version }) };
      const opened = await this.#retrying(signal)(() => this.#api.open(name, range, { signal }));
      if (opened === undefined && version !== undefined) throw replaced();
      if (opened === undefined) throw new ObjectNotFoundError(name);
      version ??= opened.version;
      try {
        for await (const piece of opened.chunks) {
          signal?.throwIfAborted();
          failures = 0;
          position += piece.byteLength;
          yield piece;
        }
        return;
      } catch (error) {
        signal?.throwIfAborted();
        failures += 1;
        if (!hasFailed(error, "unclear") || failures >= BLOB_REQUESTS.attempts) throw error;
        await this.#clock.sleep(delayMs(BLOB_REQUESTS, failures), signal);
      }
    }
  }

  async write(name: string, chunks: Chunks, { ifAbsent = false, signal }: WriteOptions): Promise<WriteOutcome> {
    const retry = this.#retrying(signal);
    const put: PutOptions = { writer: randomUUID(), ifAbsent, signal };
    // Some stores ignore the condition of a large upload; the others catch a concurrent write.
    if (ifAbsent && (await retry(() => this.#api.head(name))) !== undefined) return { outcome: "conflict" };
    const sent = { bytes: 0 };
    const written = await this.#unlessTaken(name, put, () => this.#upload(name, chunks, put, retry, sent));
    return written ? { outcome: "written", sizeBytes: sent.bytes } : { outcome: "conflict" };
  }

  async #upload(name: string, chunks: Chunks, put: PutOptions, retry: Retry, sent: { bytes: number }): Promise<void> {
    let upload;
    try {
      for await (const { bytes, last } of parts(chunks, this.#partBytes, put.signal)) {
        sent.bytes += bytes.byteLength;
        if (last && upload === undefined) return await retry(() => this.#api.put(name, bytes, put));
        upload ??= await retry(() => this.#api.beginUpload(name, { ...put, retry }));
        await upload.add(bytes, last);
      }
      await upload?.finish();
    } catch (error) {
      await upload?.abort().catch(() => undefined);
      throw error;
    }
  }

  /** An existing object may be our own: the answer to an earlier attempt was lost. */
  async #unlessTaken(name: string, put: PutOptions, upload: () => Promise<void>): Promise<boolean> {
    try {
      await upload();
      return true;
    } catch (error) {
      if (!hasFailed(error, "precondition")) throw error;
      const found = await this.#retrying(put.signal)(() => this.#api.head(name));
      return found?.writer === put.writer;
    }
  }

  #retrying(signal: AbortSignal | undefined): Retry {
    return async (action) => await retryUnclear(this.#clock, BLOB_REQUESTS, signal, action);
  }
}

function replaced(): BucketError {
  return new BucketError({ kind: "precondition" }, "it was replaced while it was read.");
}

const CHUNK_BYTES = 1024 * 1024;

/**
 * Regroups the small chunks of a network into chunks of 1 MiB, which readers of the store expect. With `reuseMemory` a
 * chunk's memory is reused for the next but one.
 */
async function* evenChunks(
  source: AsyncIterable<Uint8Array>,
  reuseMemory: boolean,
): AsyncGenerator<Uint8Array, void, undefined> {
  let memory: Buffer = Buffer.allocUnsafeSlow(CHUNK_BYTES);
  let spare: Buffer | undefined;
  let filled = 0;
  for await (const piece of source) {
    for (let taken = 0; taken < piece.byteLength;) {
      const some = piece.subarray(taken, taken + CHUNK_BYTES - filled);
      memory.set(some, filled);
      filled += some.byteLength;
      taken += some.byteLength;
      if (filled < CHUNK_BYTES) continue;
      yield memory;
      [memory, spare] = [(reuseMemory ? spare : undefined) ?? Buffer.allocUnsafeSlow(CHUNK_BYTES), memory];
      filled = 0;
    }
  }
  if (filled > 0) yield memory.subarray(0, filled);
}
