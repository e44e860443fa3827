import { randomUUID } from "node:crypto";
import { cellTooLarge } from "../cell-limit.ts";
import { type Clock, systemClock } from "../../support/clock.ts";
import { checkFolder, checkKey, isKey } from "../keys.ts";
import { probeStore } from "../probe.ts";
import {
  AmbiguousWriteError,
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
} from "../store.ts";
import { type BucketApi, type BucketStoreOptions, type ListPage, PART_BYTES } from "./bucket-api.ts";
import { BucketBlobs } from "./bucket-blobs.ts";
import { asMissingBucket, asStoreError, hasFailed } from "./bucket-error.ts";
import { retryUnclear, SMALL_REQUESTS } from "./retry.ts";

const CELL_SUFFIX = ".json";
const DELETES_AT_ONCE = 8;

const UNFIT_HINT = "Use a store with working conditional writes; docs/reference/stores.md lists some.";

/** A store below a prefix of a bucket. The {@link BucketApi} has the differences between kinds of buckets. */
export class BucketStore implements ObjectStore {
  readonly #api: BucketApi;
  readonly #prefix: string;
  readonly #clock: Clock;
  readonly #blobs: BucketBlobs;

  constructor(api: BucketApi, prefix: string, options: BucketStoreOptions = {}) {
    const { clock = systemClock, partBytes = PART_BYTES } = options;
    this.#api = api;
    this.#prefix = prefix;
    this.#clock = clock;
    this.#blobs = new BucketBlobs(api, clock, partBytes);
  }

  get address(): string {
    return this.#api.address;
  }

  async readCell(key: string): Promise<Cell | undefined> {
    const name = this.#nameOf(key);
    const cell = await this.#inTermsOfStore(key, () => this.#retrying(() => this.#api.getCell(name)));
    if (cell === undefined) return undefined;
    if (cell.body === undefined) throw cellTooLarge(key);
    return { body: cell.body, version: cell.version };
  }

  /**
   * Tried once: after an attempt without an answer, a second one might meet the first and take it for a foreign write.
   */
  async swapCell(key: string, expected: string | undefined, body: Uint8Array): Promise<SwapOutcome> {
    const name = this.#nameOf(key);
    try {
      return { outcome: "written", version: await this.#api.putCell(name, expected, body) };
    } catch (thrown) {
      const error = expected === undefined ? asMissingBucket(thrown) : thrown;
      if (hasFailed(error, "precondition", "absent")) return { outcome: "conflict" };
      if (hasFailed(error, "unclear")) throw new AmbiguousWriteError(key, error);
      throw asStoreError(error, this.#api, key);
    }
  }

  async deleteCell(key: string): Promise<void> {
    await this.delete(key);
  }

  async *listCells(folder: string): AsyncIterable<string> {
    for await (const { key } of this.listMarks(folder)) yield key;
  }

  async *listMarks(folder: string): AsyncIterable<MarkedCell> {
    for await (const entry of this.#entries(folder, true)) {
      if ("key" in entry && entry.key.endsWith(CELL_SUFFIX)) yield entry;
    }
  }

  async stat(key: string): Promise<BlobStat | undefined> {
    const name = this.#nameOf(key);
    const found = await this.#inTermsOfStore(key, () => this.#retrying(() => this.#api.head(name)));
    return found === undefined ? undefined : { sizeBytes: found.sizeBytes };
  }

  async *read(key: string, options: ReadOptions = {}): AsyncIterable<Uint8Array> {
    const name = this.#nameOf(key);
    try {
      yield* this.#blobs.read(name, options);
    } catch (error) {
      throw error instanceof ObjectNotFoundError ? new ObjectNotFoundError(key) : asStoreError(error, this.#api, key);
    }
  }

  async write(key: string, chunks: Chunks, options: WriteOptions = {}): Promise<WriteOutcome> {
    const name = this.#nameOf(key);
    return await this.#inTermsOfStore(key, () => this.#blobs.write(name, chunks, options));
  }

  async writeText(key: string, text: string): Promise<void> {
    await this.write(key, [Buffer.from(text)]);
  }

  async *list(folder: string): AsyncIterable<ListedObject> {
    for await (const entry of this.#entries(folder, false))
      if ("key" in entry) yield { key: entry.key, sizeBytes: entry.sizeBytes };
  }

  async *listFolders(folder: string): AsyncIterable<string> {
    for await (const entry of this.#entries(folder, true)) if ("folder" in entry) yield entry.folder;
  }

  async delete(key: string): Promise<void> {
    const name = this.#nameOf(key);
    await this.#inTermsOfStore(key, () => this.#retrying(() => this.#api.delete(name)));
  }

  async deleteTree(folder: string): Promise<void> {
    const name = this.#nameOf(folder);
    await this.#inTermsOfStore(folder, () => this.#deleteBelow(`${name}/`));
  }

  /**
   * Begins with requests that distinguish an unreachable store, wrong credentials and a missing bucket from missing
   * conditional writes.
   */
  async probe(): Promise<void> {
    const folder = `probe-${randomUUID()}`;
    await this.#inTermsOfStore("listing", async () => {
      for await (const { objects } of this.#pages(`${this.#prefix}${folder}/`, false)) if (objects.length > 0) break;
    });
    await this.#inTermsOfStore("a probe", async () => await this.#api.learn?.(`${this.#prefix}${folder}/learn.json`));
    await probeStore(this, UNFIT_HINT);
    // The probe above ignores failures to clean up.
    await this.deleteTree(folder);
    await this.writeText(`${folder}/blob`, "probe");
    await this.delete(`${folder}/blob`);
  }

  async *#entries(folder: string, byFolder: boolean): AsyncIterable<MarkedCell | { readonly folder: string }> {
    const below = this.#prefix + (checkFolder(folder) === "" ? "" : `${folder}/`);
    try {
      for await (const page of this.#pages(below, byFolder)) {
        for (const { name, sizeBytes, mark } of page.objects) {
          const key = name.slice(this.#prefix.length);
          // Others may keep objects here under names that are not valid keys.
          if (isKey(key)) yield { key, sizeBytes, mark };
        }
        for (const name of page.folders) {
          const child = name.slice(below.length, -1);
          if (isKey(child)) yield { folder: child };
        }
      }
    } catch (error) {
      throw asStoreError(error, this.#api, `listing ${folder === "" ? "its root" : folder}`);
    }
  }

  async *#pages(prefix: string, byFolder: boolean): AsyncGenerator<ListPage, void, undefined> {
    let pageToken: string | undefined;
    do {
      const request = { prefix, byFolder, pageToken };
      const page: ListPage = await this.#retrying(() => this.#api.listPage(request)).catch((error: unknown) => {
        // A list of a missing folder is empty.
        throw asMissingBucket(error);
      });
      yield page;
      pageToken = page.nextPageToken;
    } while (pageToken !== undefined);
  }

  /** Whatever the names are: foreign objects are removed too. */
  async #deleteBelow(prefix: string): Promise<void> {
    for await (const { objects } of this.#pages(prefix, false)) {
      const names = objects.map(({ name }) => name).values();
      await Promise.all(
        Array.from({ length: DELETES_AT_ONCE }, async () => {
          for (const name of names) await this.#retrying(() => this.#api.delete(name));
        }),
      );
    }
  }

  #nameOf(key: string): string {
    return this.#prefix + checkKey(key);
  }

  async #retrying<T>(action: () => Promise<T>): Promise<T> {
    return await retryUnclear(this.#clock, SMALL_REQUESTS, undefined, action);
  }

  async #inTermsOfStore<T>(what: string, action: () => Promise<T>): Promise<T> {
    try {
      return await action();
    } catch (error) {
      throw asStoreError(error, this.#api, what);
    }
  }
}
