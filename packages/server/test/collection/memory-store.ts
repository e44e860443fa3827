import { randomUUID } from "node:crypto";
import { checkFolder, checkKey } from "../../src/store/keys.ts";
import { probeStore } from "../../src/store/probe.ts";
import {
  type BlobStat,
  type Cell,
  type Chunks,
  type ListedObject,
  type MarkedCell,
  ObjectNotFoundError,
  type ObjectStore,
  type ReadOptions,
  type SwapOutcome,
  type WriteOptions,
  type WriteOutcome,
} from "../../src/store/store.ts";

const CHUNK_BYTES = 1024 * 1024;

/** A store that does each thing at one instant, for tests that decide in which order things happen. */
export class MemoryStore implements ObjectStore {
  readonly address = "memory";
  readonly #cells = new Map<string, Cell>();
  /** The keys of the cells directly in each folder: a fleet lists them all the time. */
  readonly #folders = new Map<string, Set<string>>();
  readonly #blobs = new Map<string, Buffer>();
  #changes = 0;

  /** Grows with each thing that is written or removed. */
  get changes(): number {
    return this.#changes;
  }

  async readCell(key: string): Promise<Cell | undefined> {
    return this.#cells.get(checkKey(key));
  }

  async swapCell(key: string, expected: string | undefined, body: Uint8Array): Promise<SwapOutcome> {
    if (this.#cells.get(checkKey(key))?.version !== expected) return { outcome: "conflict" };
    const version = randomUUID();
    this.#changes += 1;
    this.#cells.set(key, { body: Buffer.from(body), version });
    this.#folder(key).add(key);
    return { outcome: "written", version };
  }

  async deleteCell(key: string): Promise<void> {
    this.#forget(checkKey(key));
    this.#changes += 1;
  }

  async *listCells(folder: string): AsyncIterable<string> {
    yield* [...(this.#folders.get(checkFolder(folder)) ?? [])].filter((key) => key.endsWith(".json"));
  }

  async *listMarks(folder: string): AsyncIterable<MarkedCell> {
    for await (const key of this.listCells(folder)) {
      const cell = this.#cells.get(key);
      if (cell !== undefined) yield { key, sizeBytes: cell.body.byteLength, mark: cell.version };
    }
  }

  async stat(key: string): Promise<BlobStat | undefined> {
    const blob = this.#blobs.get(checkKey(key));
    return blob === undefined ? undefined : { sizeBytes: blob.byteLength };
  }

  /** For looking at it between two steps. */
  has(key: string): boolean {
    return this.#blobs.has(key);
  }

  async *read(key: string, { start = 0, end }: ReadOptions = {}): AsyncIterable<Uint8Array> {
    const blob = this.#blobs.get(checkKey(key));
    if (blob === undefined) throw new ObjectNotFoundError(key);
    const wanted = blob.subarray(start, end);
    for (let at = 0; at < wanted.byteLength; at += CHUNK_BYTES)
      yield Buffer.from(wanted.subarray(at, at + CHUNK_BYTES));
  }

  async write(key: string, chunks: Chunks, options: WriteOptions = {}): Promise<WriteOutcome> {
    checkKey(key);
    const pieces: Buffer[] = [];
    for await (const chunk of chunks) {
      options.signal?.throwIfAborted();
      pieces.push(Buffer.from(chunk));
    }
    if (options.ifAbsent === true && this.#blobs.has(key)) return { outcome: "conflict" };
    const blob = Buffer.concat(pieces);
    this.#blobs.set(key, blob);
    this.#changes += 1;
    return { outcome: "written", sizeBytes: blob.byteLength };
  }

  async writeText(key: string, text: string): Promise<void> {
    await this.write(key, [Buffer.from(text)]);
  }

  async *list(folder: string): AsyncIterable<ListedObject> {
    for (const key of below(folder, this.#cells.keys())) {
      yield { key, sizeBytes: this.#cells.get(key)?.body.byteLength ?? 0 };
    }
    for (const key of below(folder, this.#blobs.keys())) {
      yield { key, sizeBytes: this.#blobs.get(key)?.byteLength ?? 0 };
    }
  }

  async *listFolders(folder: string): AsyncIterable<string> {
    const keys = [...below(folder, this.#cells.keys()), ...below(folder, this.#blobs.keys())];
    const rests = keys.map((key) => key.slice(prefixOf(folder).length).split("/"));
    yield* new Set(rests.flatMap(([child, ...others]) => (child === undefined || others.length === 0 ? [] : [child])));
  }

  async delete(key: string): Promise<void> {
    this.#blobs.delete(checkKey(key));
    this.#changes += 1;
  }

  async deleteTree(folder: string): Promise<void> {
    checkKey(folder);
    this.#changes += 1;
    for (const key of below(folder, this.#cells.keys())) this.#forget(key);
    for (const key of below(folder, this.#blobs.keys())) this.#blobs.delete(key);
  }

  #forget(key: string): void {
    this.#cells.delete(key);
    this.#folder(key).delete(key);
  }

  #folder(key: string): Set<string> {
    const folder = key.slice(0, Math.max(0, key.lastIndexOf("/")));
    const keys = this.#folders.get(folder) ?? new Set<string>();
    this.#folders.set(folder, keys);
    return keys;
  }

  async probe(): Promise<void> {
    await probeStore(this, "");
  }
}

function prefixOf(folder: string): string {
  return checkFolder(folder) === "" ? "" : `${folder}/`;
}

function below(folder: string, keys: Iterable<string>): string[] {
  const prefix = prefixOf(folder);
  return [...keys].filter((key) => key.startsWith(prefix));
}
