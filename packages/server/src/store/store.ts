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

  /** Undefined when there is no such cell. */
  readCell(key: string, options?: CellReadOptions): Promise<Cell | undefined>;

  /**
   * Replaces the cell if its version is still `expected`, or creates it if `expected` is undefined and it is absent.
   * `conflict` means that nothing was or will be written. {@link AmbiguousWriteError} means that it is unknown whether
   * it was, or may still be, applied: read again and look for what was written.
   */
  swapCell(key: string, expected: string | undefined, body: Uint8Array): Promise<SwapOutcome>;

  /**
   * Removes a cell in one step: a reader sees its last version or none, and a swap at any version of it is a conflict.
   * For cells that nobody needs any more: whoever creates one under the key begins anew. One that is not there is fine.
   */
  deleteCell(key: string): Promise<void>;

  /** The keys of the cells directly in a folder. */
  listCells(folder: string): AsyncIterable<string>;

  /** Undefined when there is no such blob. */
  stat(key: string): Promise<BlobStat | undefined>;

  /**
   * The bytes from `start` up to but without `end`, in chunks of about 1 MiB that are the consumer's to keep, unless it
   * allows `reuseMemory`. A range beyond the end gives what is there. Throws {@link ObjectNotFoundError}.
   */
  read(key: string, options?: ReadOptions): AsyncIterable<Uint8Array>;

  /**
   * Writes a blob, durably and atomically: a reader sees nothing of it before the promise resolves. A chunk is used only
   * until the next one is asked for, so that the producer may reuse its memory. With `ifAbsent` an existing blob stays
   * and the outcome is `conflict`. After a failure nothing is left, unless the store itself cannot be reached any more.
   */
  write(key: string, chunks: Chunks, options?: WriteOptions): Promise<WriteOutcome>;

  /** {@link write} for small text that replaces what is there. */
  writeText(key: string, text: string): Promise<void>;

  /** Blobs and cells below a folder, at any depth, in no particular order. */
  list(folder: string): AsyncIterable<ListedObject>;

  /** The names of the folders directly in a folder. */
  listFolders(folder: string): AsyncIterable<string>;

  /**
   * Where a blob lies, or would lie, as a plain file on this machine, for threads that read it themselves. Nothing is
   * written to it. Absent where blobs are elsewhere.
   */
  localFile?(key: string): string;

  /** Removes a blob. Removing what is not there is fine. */
  delete(key: string): Promise<void>;

  /** Removes everything below a folder, cells included. Others must not write there meanwhile. */
  deleteTree(folder: string): Promise<void>;

  /** Tries out that the store keeps this contract, races included; throws `store_unavailable` with what it found. */
  probe(): Promise<void>;

  /**
   * Makes sure that this is still the store that was opened; throws `store_unavailable` when it has vanished or another
   * one is in its place. Absent where nobody can tell.
   */
  verify?(): Promise<void>;
}

export interface CellReadOptions {
  /** Nothing depends on the answer: that there is no such cell is believed without a look at the store's marker. */
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
  /** What it takes up. A cell may take up more than its body. */
  readonly sizeBytes: number;
}

export interface ReadOptions {
  readonly start?: number;
  readonly end?: number;
  /** The consumer is done with a chunk when it asks for the next but one. Much cheaper for large blobs. */
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

/** A swap for who finds out by another look what has become of it. */
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

/** What is taken into memory of a blob whose size nobody has said. */
const LARGEST_SMALL_BLOB_BYTES = 64 * 1024 * 1024;

/**
 * All bytes of a small blob, up to `end` where that is given; undefined when there is no such blob. `image_damaged` when
 * it is not small.
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
