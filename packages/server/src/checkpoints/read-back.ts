import { crc32 } from "node:zlib";
import { SandboxerError } from "@sandboxer/protocol";
import type { ObjectStore } from "../store/store.ts";

/** The digest of bytes that passed through. */
export interface Sum {
  crc: number;
  sizeBytes: number;
}

export async function* summing(chunks: AsyncIterable<Uint8Array>, sum: Sum): AsyncGenerator<Uint8Array> {
  for await (const chunk of chunks) {
    sum.crc = crc32(chunk, sum.crc);
    sum.sizeBytes += chunk.byteLength;
    yield chunk;
  }
}

/** Throws unless the stored bytes equal the written ones. */
export async function readBack(
  store: ObjectStore,
  key: string,
  written: Sum,
  signal: AbortSignal | undefined,
): Promise<void> {
  const read: Sum = { crc: 0, sizeBytes: 0 };
  const options = { reuseMemory: true, ...(signal === undefined ? {} : { signal }) };
  for await (const chunk of store.read(key, options)) {
    read.crc = crc32(chunk, read.crc);
    read.sizeBytes += chunk.byteLength;
  }
  if (read.crc === written.crc && read.sizeBytes === written.sizeBytes) return;
  throw new SandboxerError("checkpoint_failed", `${key} reads back differently from what was written.`, {
    hint: "The sandbox keeps running. Check the store's disk or service, then save again.",
  });
}

/** Copies a blob and reads it back; false if the name is taken. */
export async function copyBlob(from: ObjectStore, fromKey: string, to: ObjectStore, toKey: string): Promise<boolean> {
  const sum: Sum = { crc: 0, sizeBytes: 0 };
  const { outcome } = await to.write(toKey, summing(from.read(fromKey), sum), { ifAbsent: true });
  if (outcome === "conflict") return false;
  await readBack(to, toKey, sum, undefined);
  return true;
}
