import { type Head, isSandboxId, SandboxerError } from "@sandboxer/protocol";
import { beginAhead } from "../support/begin-ahead.ts";
import { SerialQueue } from "../support/serial-queue.ts";
import type { ObjectStore } from "../store/store.ts";
import { readStoredSandbox, type StoredSandbox } from "./stored-sandboxes.ts";

/** Facts that never change for a sandbox: enough to find and sort it, never its state. */
export interface IndexedSandbox {
  readonly sandboxId: string;
  readonly createdAt: string;
  readonly key: string | null;
  readonly backend: string;
  /** Whether other servers resume it if its server dies. */
  readonly restarts: boolean;
}

/** Storage of an index while no server runs. It is a cache: missing entries are read from the store again. */
export interface IndexFile {
  read(): Promise<readonly IndexedSandbox[]>;
  write(entries: Iterable<IndexedSandbox>): Promise<void>;
}

export interface IndexLook {
  /** Newest first, then the lowest ids. Deleted ones are included. */
  readonly sorted: readonly IndexedSandbox[];
  /** Sandboxes without a head, or with an unreadable one. */
  readonly others: readonly StoredSandbox[];
}

const READS_AHEAD = 16;
/** A smaller index is not worth storing. */
const WORTH_KEEPING = 1000;

/**
 * The sandboxes of a store in the order of lists, without reading every head for each list: it lists the names, and
 * reads the heads of new ones. It holds no changing facts; to show a sandbox, read its head.
 */
export class SandboxIndex {
  readonly #store: ObjectStore;
  readonly #file: IndexFile | undefined;
  readonly #worthKeeping: number;
  readonly #entries = new Map<string, IndexedSandbox>();
  /** Deleted, which is final. */
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

  /** Sees everything that was in the store when it was called. Concurrent callers share one listing. */
  look(): Promise<IndexLook> {
    this.#waiting ??= this.#looks.run(async () => {
      this.#waiting = undefined;
      return await this.#look();
    });
    return this.#waiting;
  }

  /** Ends listings in progress: a stopping server waits for none. */
  close(): void {
    this.#closed = true;
  }

  isDestroyed(sandboxId: string): boolean {
    return this.#destroyed.has(sandboxId);
  }

  /** Tells the index of a head that was just read. */
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
    const restarts = about?.restart === "always";
    this.#entries.set(sandboxId, { sandboxId, createdAt, key: about?.key ?? null, backend, restarts });
    this.met(sandboxId, head);
    this.#unkept += 1;
    return true;
  }

  /** Compares the store with the index. Kept cheap: it runs for each list. */
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

  /** Deleted ones are not stored: they are found again if an older state of the store is restored. */
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
