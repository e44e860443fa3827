import { hasMarkerFile, MARKER_KEY, notThere, readStoreId } from "./marker.ts";
import {
  AmbiguousWriteError,
  type BlobStat,
  type Cell,
  type CellReadOptions,
  type Chunks,
  type ListedObject,
  type MarkedCell,
  ObjectNotFoundError,
  type ObjectStore,
  type ReadOptions,
  type SwapOutcome,
  type WriteOptions,
  type WriteOutcome,
} from "./store.ts";

/**
 * A store that may disappear: a folder whose mount is missing looks like an empty store, and so does an emptied bucket.
 * The marker with the store's id distinguishes them. While it is missing or has another id, every call fails with
 * `store_unavailable`: nothing counts as absent, and nothing is written.
 *
 * In a local folder a check of the marker is cheap, so every call does one: before a write, so that it does not go into
 * a bare mount point, and after it, so that such a write is not acknowledged. In a bucket a check is a request. It is
 * made when something is absent, on {@link verify}, which each renewal of a lease calls, and with each call while the
 * marker is missing.
 */
export class GuardedStore implements ObjectStore {
  readonly localFile?: (key: string) => string;
  readonly #inner: ObjectStore;
  readonly #id: string;
  readonly #isOwn: boolean;
  /** The path of the marker, if it is a file of this machine. */
  readonly #markerFile: string | undefined;
  #isMissed = false;
  /** How often the marker was found missing. */
  #misses = 0;

  /** `isOwn`: it is a folder on this machine that belongs to its server alone. */
  constructor(inner: ObjectStore, id: string, isOwn = false) {
    this.#inner = inner;
    this.#id = id;
    this.#isOwn = isOwn;
    this.#markerFile = inner.localFile?.(MARKER_KEY);
    if (inner.localFile !== undefined) this.localFile = (key) => inner.localFile?.(key) ?? "";
  }

  get address(): string {
    return this.#inner.address;
  }

  async verify(): Promise<void> {
    if (this.#markerFile !== undefined && (await hasMarkerFile(this.#markerFile, this.#id, this.#isOwn))) return;
    const found = await readStoreId(this.#inner);
    this.#isMissed = found !== this.#id;
    if (!this.#isMissed) return;
    this.#misses += 1;
    throw notThere(this.address, this.#id, found);
  }

  async readCell(key: string, options: CellReadOptions = {}): Promise<Cell | undefined> {
    return await this.#found(() => this.#inner.readCell(key), options.casual !== true);
  }

  async swapCell(key: string, expected: string | undefined, body: Uint8Array): Promise<SwapOutcome> {
    await this.#look();
    const result = await this.#inner.swapCell(key, expected, body);
    try {
      await this.#look();
    } catch (error) {
      throw result.outcome === "written" ? new AmbiguousWriteError(key, error) : error;
    }
    return result;
  }

  async deleteCell(key: string): Promise<void> {
    await this.#look();
    await this.#inner.deleteCell(key);
  }

  listCells(folder: string): AsyncIterable<string> {
    return this.#listing(this.#inner.listCells(folder), (key) => key !== MARKER_KEY);
  }

  listMarks(folder: string): AsyncIterable<MarkedCell> {
    return this.#listing(this.#inner.listMarks(folder), ({ key }) => key !== MARKER_KEY);
  }

  async stat(key: string): Promise<BlobStat | undefined> {
    return await this.#found(() => this.#inner.stat(key));
  }

  async *read(key: string, options?: ReadOptions): AsyncIterable<Uint8Array> {
    try {
      yield* this.#inner.read(key, options);
    } catch (error) {
      const isAbsent = error instanceof ObjectNotFoundError;
      await this.#look(isAbsent);
      if (!isAbsent || this.#markerFile === undefined) throw error;
      // It is not read partially: a missing blob has produced nothing yet.
      yield* this.#inner.read(key, options);
    }
  }

  async write(key: string, chunks: Chunks, options?: WriteOptions): Promise<WriteOutcome> {
    await this.#look();
    const result = await this.#inner.write(key, this.#withLookAtEnd(chunks), options);
    await this.#look();
    return result;
  }

  async writeText(key: string, text: string): Promise<void> {
    await this.write(key, [Buffer.from(text)]);
  }

  list(folder: string): AsyncIterable<ListedObject> {
    return this.#listing(this.#inner.list(folder), ({ key }) => key !== MARKER_KEY);
  }

  listFolders(folder: string): AsyncIterable<string> {
    return this.#listing(this.#inner.listFolders(folder));
  }

  async delete(key: string): Promise<void> {
    await this.#look();
    await this.#inner.delete(key);
  }

  async deleteTree(folder: string): Promise<void> {
    await this.#look();
    await this.#inner.deleteTree(folder);
  }

  async probe(): Promise<void> {
    await this.#look();
    await this.#inner.probe();
  }

  /** Checks the marker if that is cheap, or if something depends on it. */
  async #look(isDue = false): Promise<void> {
    if (isDue || this.#isMissed || this.#markerFile !== undefined) await this.verify();
  }

  /**
   * The result of a read. A folder may be mounted again between a read that found nothing and the check of the marker:
   * a missing object in a folder is looked up once more, with a check before and after it.
   */
  async #found<T>(read: () => Promise<T | undefined>, isDue = true): Promise<T | undefined> {
    const found = await this.#reading(read);
    await this.#look(found === undefined && isDue);
    if (found !== undefined || !isDue || this.#markerFile === undefined) return found;
    const again = await this.#reading(read);
    await this.#look();
    return again;
  }

  /** A failure because the store disappeared is reported as such. */
  async #reading<T>(read: () => Promise<T>): Promise<T> {
    try {
      return await read();
    } catch (error) {
      await this.#look();
      throw error;
    }
  }

  /**
   * A list is invalid if it begins or ends without a check of the marker where one is due, or if the marker was missing
   * during it. The marker is not part of the list.
   */
  async *#listing<T>(listed: AsyncIterable<T>, isListed: (each: T) => boolean = () => true): AsyncIterable<T> {
    await this.#look();
    const misses = this.#misses;
    let isEmpty = true;
    try {
      for await (const each of listed) {
        if (!isListed(each)) continue;
        isEmpty = false;
        yield each;
      }
    } catch (error) {
      await this.#look();
      throw error;
    }
    await this.#look(isEmpty);
    if (this.#misses !== misses) throw notThere(this.address, this.#id, undefined);
  }

  /** A large blob takes time: the last check before it gets its name comes after its last byte. */
  async *#withLookAtEnd(chunks: Chunks): AsyncIterable<Uint8Array> {
    yield* chunks;
    await this.#look();
  }
}
