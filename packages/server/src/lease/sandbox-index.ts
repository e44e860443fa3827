import { type Head, isSandboxId, SandboxerError } from "@sandboxer/protocol";
import { beginAhead } from "../support/begin-ahead.ts";
import { SerialQueue } from "../support/serial-queue.ts";
import type { ObjectStore } from "../store/store.ts";
import { readStoredSandbox, type StoredSandbox } from "./stored-sandboxes.ts";

/** What no move of a sandbox changes: enough to find it and to sort it, never to say how it is. */
export interface IndexedSandbox {
  readonly sandboxId: string;
  readonly createdAt: string;
  readonly key: string | null;
  readonly backend: string;
}

/** Where an index is kept while no server runs. It is a cache: what is not in it is read from the store again. */
export interface IndexFile {
  read(): Promise<readonly IndexedSandbox[]>;
  write(entries: Iterable<IndexedSandbox>): Promise<void>;
}

export interface IndexLook {
  /** Newest first, then the lowest ids. Destroyed ones are among them. */
  readonly sorted: readonly IndexedSandbox[];
  /** Those without a head, or whose head cannot be read. */
  readonly others: readonly StoredSandbox[];
}

const READS_AHEAD = 16;
/** Fewer are read again in a moment. */
const WORTH_KEEPING = 1000;

/**
 * Which sandboxes a store has, in the order of lists, without a read of every head for each list: a look asks for the
 * names of all, and reads the heads of those that it has not met. What changes is not in here; who shows a sandbox reads
 * its head.
 */
export class SandboxIndex {
  readonly #store: ObjectStore;
  readonly #file: IndexFile | undefined;
  readonly #worthKeeping: number;
  readonly #entries = new Map<string, IndexedSandbox>();
  /** Destroyed, which is for good. */
  readonly #destroyed = new Set<string>();
  readonly #looks = new SerialQueue();
  #sorted: readonly IndexedSandbox[] = [];
  #waiting: Promise<IndexLook> | undefined;
  #loaded = false;
  #closed = false;
  #unkept = 0;

  constructor(store: ObjectStore, file?: IndexFile, worthKeeping: number = WORTH_KEEPING) {
    this.#store = store;
    this.#file = file;
    this.#worthKeeping = worthKeeping;
  }

  /** Sees everything that was in the store when it was called. Those who wait for the same moment share one look. */
  look(): Promise<IndexLook> {
    this.#waiting ??= this.#looks.run(async () => {
      this.#waiting = undefined;
      return await this.#look();
    });
    return this.#waiting;
  }

  /** Ends looks that are under way: a server that ends waits for none. */
  close(): void {
    this.#closed = true;
  }

  isDestroyed(sandboxId: string): boolean {
    return this.#destroyed.has(sandboxId);
  }

  /** Tells what a head was just now. */
  met(sandboxId: string, head: Head): void {
    if (head.state === "deleted") this.#destroyed.add(sandboxId);
  }

  async #look(): Promise<IndexLook> {
    if (!this.#loaded) await this.#load();
    const { unknown, gone } = await this.#compare();
    for (const sandboxId of gone) {
      this.#entries.delete(sandboxId);
      this.#destroyed.delete(sandboxId);
    }
    let changed = gone.length > 0;
    const others: StoredSandbox[] = [];
    const read = (sandboxId: string): Promise<StoredSandbox> => readStoredSandbox(this.#store, sandboxId);
    for await (const found of beginAhead(unknown, READS_AHEAD, read)) {
      if (this.#closed) throw new SandboxerError("draining", "The server is shutting down.");
      if (found.head === undefined) others.push(found);
      else changed = this.#add(found.sandboxId, found.head);
    }
    if (changed) this.#sorted = [...this.#entries.values()].toSorted(newestFirst);
    if (this.#unkept >= this.#worthKeeping) await this.#keep();
    return { sorted: this.#sorted, others };
  }

  #add(sandboxId: string, head: Head): true {
    const { createdAt, backend, about } = head;
    this.#entries.set(sandboxId, { sandboxId, createdAt, key: about?.key ?? null, backend });
    this.met(sandboxId, head);
    this.#unkept += 1;
    return true;
  }

  /** What the store has and the index not, and the other way round. As cheap as it can be: this is done for each list. */
  async #compare(): Promise<{ readonly unknown: readonly string[]; readonly gone: readonly string[] }> {
    const names: string[] = [];
    const unknown: string[] = [];
    for await (const name of this.#store.listFolders("")) {
      if (this.#entries.has(name)) names.push(name);
      else if (isSandboxId(name)) unknown.push(name);
    }
    if (names.length === this.#entries.size) return { unknown, gone: [] };
    const present = new Set(names);
    return { unknown, gone: [...this.#entries.keys()].filter((sandboxId) => !present.has(sandboxId)) };
  }

  async #load(): Promise<void> {
    this.#loaded = true;
    const kept = (await this.#file?.read().catch(() => [])) ?? [];
    for (const entry of kept) this.#entries.set(entry.sandboxId, entry);
    this.#sorted = [...this.#entries.values()].toSorted(newestFirst);
  }

  /** Destroyed ones are not kept: who puts an older state of the store back finds them again. */
  async #keep(): Promise<void> {
    this.#unkept = 0;
    const living = this.#sorted.filter(({ sandboxId }) => !this.#destroyed.has(sandboxId));
    // Without it the next start takes longer.
    await this.#file?.write(living).catch(() => {});
  }
}

function newestFirst(a: IndexedSandbox, b: IndexedSandbox): number {
  if (a.createdAt !== b.createdAt) return a.createdAt < b.createdAt ? 1 : -1;
  return a.sandboxId < b.sandboxId ? -1 : 1;
}
