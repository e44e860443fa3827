import { recordDamaged } from "../support/record-damage.ts";

/**
 * Named bytes with compare-and-swap. A store does not know what the bytes mean.
 *
 * It holds two sorts of objects. **Cells** are small and change only by {@link ObjectStore.swapCell}, so that of several
 * writers that saw the same version exactly one succeeds. **Blobs** are large, and appear whole or not at all. One key is
 * used for one sort only.
 *
 * Keys are segments of `A-Z a-z 0-9 . _ -` joined by `/`; none is empty or begins with a dot. Others are a `bad_request`.
 * A folder is a key, or `""` for the root. A read that begins after a write was answered sees that write or a later one.
 * Failures are SandboxerErrors (`no_space`, `store_unavailable`) unless a method names its own.
 *
 * Every driver passes `test/store/store-contract.ts`.
 */
export interface ObjectStore {
  /** For people and logs: the store's address, without secrets. */
  readonly address: string;

  /** Undefined if there is no such cell. */
  readCell(key: string, options?: CellReadOptions): Promise<Cell | undefined>;

  /**
   * Replaces the cell if its version is still `expected`, or creates it if `expected` is undefined and it is absent.
   * `conflict` means that nothing was or will be written. {@link AmbiguousWriteError} means that it is unknown whether
   * it was, or may still be, applied: read again and compare.
   */
  swapCell(key: string, expected: string | undefined, body: Uint8Array): Promise<SwapOutcome>;

  /**
   * Removes a cell in one step: a reader sees its last version or none, and a swap at any version of it is a conflict.
   * For cells that are no longer needed: a later creation under the key starts fresh. Removing a missing cell is fine.
   */
  deleteCell(key: string): Promise<void>;

  /** The keys of the cells directly in a folder. */
  listCells(folder: string): AsyncIterable<string>;

  /** As {@link listCells}, with a mark of each cell's content: many cells are watched without reading each of them. */
  listMarks(folder: string): AsyncIterable<MarkedCell>;

  /** Undefined if there is no such blob. */
  stat(key: string): Promise<BlobStat | undefined>;

  /**
   * The bytes from `start` to `end` (exclusive), in chunks of about 1 MiB that the consumer may keep, unless it allows
   * `reuseMemory`. A range beyond the end returns what exists. Throws {@link ObjectNotFoundError}.
   */
  read(key: string, options?: ReadOptions): AsyncIterable<Uint8Array>;

  /**
   * Writes a blob, durably and atomically: a reader sees nothing of it before the promise resolves. A chunk is used
   * only until the next one is requested, so that the producer may reuse its memory. With `ifAbsent` an existing blob
   * stays and the outcome is `conflict`. After a failure nothing is left, unless the store itself is unreachable.
   */
  write(key: string, chunks: Chunks, options?: WriteOptions): Promise<WriteOutcome>;

  /** {@link write} for small text that replaces an existing blob. */
  writeText(key: string, text: string): Promise<void>;

  /** Blobs and cells below a folder, at any depth, in no particular order. */
  list(folder: string): AsyncIterable<ListedObject>;

  /** The names of the folders directly in a folder. */
  listFolders(folder: string): AsyncIterable<string>;

  /**
   * The path of a blob as a plain file on this machine, for threads that read it themselves. Nothing is written to it.
   * Absent if blobs are remote.
   */
  localFile?(key: string): string;

  /** Removes a blob. Removing a missing blob is fine. */
  delete(key: string): Promise<void>;

  /** Removes everything below a folder, cells included. Others must not write there meanwhile. */
  deleteTree(folder: string): Promise<void>;

  /** Tests that the store keeps this contract, races included; throws `store_unavailable` with the finding. */
  probe(): Promise<void>;

  /**
   * Checks that this is still the store that was opened; throws `store_unavailable` if it disappeared or was replaced.
   * Absent if that cannot be checked.
   */
  verify?(): Promise<void>;
}

export interface CellReadOptions {
  /** Nothing depends on the answer: a missing cell is believed without checking the store's marker. */
  readonly casual?: boolean;
}

export interface Cell {
  readonly body: Uint8Array;
  /** Opaque; differs between any two versions of a cell. */
  readonly version: string;
  /** Where it lies on this machine, for people. */
  readonly file?: string;
}

export type SwapOutcome = { readonly outcome: "written"; readonly version: string } | { readonly outcome: "conflict" };

export type WriteOutcome =
  | { readonly outcome: "written"; readonly sizeBytes: number }
  | { readonly outcome: "conflict" };

export type Chunks = AsyncIterable<Uint8Array> | Iterable<Uint8Array>;

export interface BlobStat {
  readonly sizeBytes: number;
}

export interface ListedObject {
  readonly key: string;
  /** The size in the store. A cell may use more than its body. */
  readonly sizeBytes: number;
}

export interface MarkedCell extends ListedObject {
  /** Differs between any two versions of a cell, until it is deleted. Compare it with other marks only. */
  readonly mark: string;
}

export interface ReadOptions {
  readonly start?: number;
  readonly end?: number;
  /** The consumer is done with a chunk when it requests the next but one. Much cheaper for large blobs. */
  readonly reuseMemory?: boolean;
  readonly signal?: AbortSignal;
}

export interface WriteOptions {
  readonly ifAbsent?: boolean;
  readonly signal?: AbortSignal;
}

/** It is unknown whether the write was, or may still be, applied. */
export class AmbiguousWriteError extends Error {
  readonly key: string;

  constructor(key: string, cause: unknown) {
    super(`It is unknown whether the write of ${key} was applied.`, { cause });
    this.name = "AmbiguousWriteError";
    this.key = key;
  }
}

/** A swap for callers that determine an ambiguous outcome by another read. */
export async function trySwap(
  store: ObjectStore,
  key: string,
  expected: string | undefined,
  body: Uint8Array,
): Promise<SwapOutcome | { readonly outcome: "ambiguous" }> {
  try {
    return await store.swapCell(key, expected, body);
  } catch (error) {
    if (error instanceof AmbiguousWriteError) return { outcome: "ambiguous" };
    throw error;
  }
}

export class ObjectNotFoundError extends Error {
  readonly key: string;

  constructor(key: string) {
    super(`The store has no object ${key}.`);
    this.name = "ObjectNotFoundError";
    this.key = key;
  }
}

/** Memory limit for a blob of unknown size. */
const LARGEST_SMALL_BLOB_BYTES = 64 * 1024 * 1024;

/**
 * All bytes of a small blob, up to `end` if given; undefined if there is no such blob. `image_damaged` if it is not
 * small.
 */
export async function readWhole(store: ObjectStore, key: string, options?: ReadOptions): Promise<Buffer | undefined> {
  const limitBytes = options?.end === undefined ? LARGEST_SMALL_BLOB_BYTES : Infinity;
  const chunks: Uint8Array[] = [];
  let bytes = 0;
  try {
    for await (const chunk of store.read(key, options)) {
      bytes += chunk.byteLength;
      if (bytes > limitBytes) throw recordDamaged(key, `it is larger than ${limitBytes} bytes.`);
      chunks.push(chunk);
    }
    return Buffer.concat(chunks);
  } catch (error) {
    if (error instanceof ObjectNotFoundError) return undefined;
    throw error;
  }
}
