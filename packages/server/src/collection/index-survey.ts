import { snapshotEntries } from "../checkpoints/snapshot-entries.ts";
import { changeCell } from "../checkpoints/snapshot-cell.ts";
import { decodeSnapshot, recordKey } from "../checkpoints/snapshot-record.ts";
import { entriesOf, isVoid, sandboxViews } from "../lease/head-entries.ts";
import { decodeRecord, INSTANCES_FOLDER } from "../lease/liveness-record.ts";
import { listStoredSandboxes, readStoredSandbox, type StoredSandbox } from "../lease/stored-sandboxes.ts";
import { entryKey, INDEX_FOLDER, parseName, placeOf } from "../store/index/index-names.ts";
import { INDEX_STATE_KEY, type IndexState, indexStateSchema } from "../store/index/store-index.ts";
import type { ObjectStore } from "../store/store.ts";
import { jsonOf } from "../support/json.ts";
import { mapAtOnce } from "../support/map-at-once.ts";
import { unlessDamaged } from "../support/record-damage.ts";
import { type SightedSnapshot, sightSnapshots } from "./collect-snapshots.ts";
import type { CollectionContext } from "./garbage.ts";
import { NameSet } from "./name-set.ts";

const ADDED_AT_ONCE = 64;
const READS_AT_ONCE = 16;
/** An entry without its head may belong to a creation in progress. After this long it is abandoned. */
const ABANDONED_MS = 3_600_000;
/** Others are judged by later comparisons. */
const MOST_REMEMBERED = 100_000;

export interface IndexFindings {
  /** Entries that a head or a record needs and that were missing. */
  readonly missing: number;
  /** Entries that no head or record confirms and that nobody can still need. */
  readonly outdated: number;
}

/** Compares the index of a store with its heads and snapshot records, and repairs it. Remembers for the next time. */
export class IndexSurveyor {
  /** Entries that nothing confirmed, and when that was first seen (monotonic). */
  readonly #unconfirmed = new Map<string, number>();

  /** Builds an index that is not complete, or marks it so while a server does not write entries. */
  async attend(context: CollectionContext): Promise<void> {
    const isComplete = (await readIndexState(context.store))?.complete === true;
    const { allKnow } = await readServerKnowledge(context.store);
    if (allKnow && !isComplete) await this.compare(context);
    else if (!allKnow && isComplete) await markIndex(context.store, false);
  }

  /** Reads all heads and records. */
  async compare(context: CollectionContext): Promise<IndexFindings> {
    const comparison = await this.begin(context);
    for await (const stored of listStoredSandboxes(context.store)) await comparison.head(stored);
    return await comparison.end(await sightSnapshots(context));
  }

  /** For a caller that reads all heads itself, from now on. */
  async begin(context: CollectionContext): Promise<IndexComparison> {
    const before = await readServerKnowledge(context.store);
    const listed = new NameSet();
    for await (const key of entries(context)) listed.add(key);
    return new IndexComparison(context, this.#unconfirmed, listed, before);
  }
}

export class IndexComparison {
  readonly #context: CollectionContext;
  readonly #unconfirmed: Map<string, number>;
  readonly #listed: NameSet;
  readonly #before: ServerKnowledge;
  readonly #needed = new NameSet();
  #missing: string[] = [];
  #missingCount = 0;

  constructor(context: CollectionContext, unconfirmed: Map<string, number>, listed: NameSet, before: ServerKnowledge) {
    this.#context = context;
    this.#unconfirmed = unconfirmed;
    this.#listed = listed;
    this.#before = before;
  }

  async head(stored: StoredSandbox): Promise<void> {
    await this.#need(entriesOfStored(stored));
  }

  async end(snapshots: readonly SightedSnapshot[]): Promise<IndexFindings> {
    for (const { record } of snapshots) if (typeof record !== "string") await this.#need(snapshotEntries(record));
    await this.#add();
    const outdated = await this.#removeOutdated();
    if (this.#context.apply) await this.#mark();
    return { missing: this.#missingCount, outdated };
  }

  async #need(keys: readonly string[]): Promise<void> {
    for (const key of keys) {
      this.#needed.add(key);
      if (!this.#listed.has(key)) this.#missing.push(key);
    }
    if (this.#missing.length >= ADDED_AT_ONCE) await this.#add();
  }

  /** The head may have changed since: then the entry is outdated, which is harmless. */
  async #add(): Promise<void> {
    const missing = this.#missing.splice(0);
    this.#missingCount += missing.length;
    if (this.#context.apply && missing.length > 0) await this.#context.store.addNames(missing);
  }

  async #removeOutdated(): Promise<number> {
    const { store, clock, apply, signal } = this.#context;
    const strange: string[] = [];
    for await (const key of entries(this.#context)) {
      if (!this.#needed.has(key)) strange.push(key);
      else this.#unconfirmed.delete(key);
    }
    const nowMs = clock.monotonicMs();
    const outdated = await mapAtOnce(
      strange,
      READS_AT_ONCE,
      async (key) => {
        const verdict = await judge(store, key);
        const sinceMs = this.#unconfirmed.get(key);
        const isOutdated = verdict === "void" || (sinceMs !== undefined && nowMs - sinceMs >= ABANDONED_MS);
        if (verdict === "needed" || isOutdated) this.#unconfirmed.delete(key);
        else if (sinceMs === undefined && this.#unconfirmed.size < MOST_REMEMBERED) this.#unconfirmed.set(key, nowMs);
        return verdict !== "needed" && isOutdated ? [key] : [];
      },
      signal,
    );
    const keys = outdated.flat();
    if (apply && keys.length > 0) await store.removeNames(keys);
    return keys.length;
  }

  /** A server that came and went meanwhile may have written heads without entries. */
  async #mark(): Promise<void> {
    const after = await readServerKnowledge(this.#context.store);
    const hasStranger = [...after.dead].some((id) => !this.#before.all.has(id));
    await markIndex(this.#context.store, this.#before.allKnow && after.allKnow && !hasStranger);
  }
}

/** Whether an entry is needed by now, can never be needed again, or may be needed by a write in progress. */
async function judge(store: ObjectStore, key: string): Promise<"needed" | "void" | "unknown"> {
  const [, view = "", name = ""] = key.split("/");
  const id = parseName(name)?.id;
  if (id === undefined) return "unknown";
  if (view.startsWith("snapshots")) {
    const cell = await store.readCell(recordKey(id)).catch(unlessDamaged);
    if (cell === undefined || cell === "damaged") return "unknown";
    return snapshotEntries(decodeSnapshot(id, cell.body)).includes(key) ? "needed" : "unknown";
  }
  const stored = await readStoredSandbox(store, id);
  if (entriesOfStored(stored).includes(key)) return "needed";
  const suffix = name.slice(name.indexOf(".") + 1);
  return stored.head !== undefined && isVoid(view, suffix, stored.head) ? "void" : "unknown";
}

function entriesOfStored({ sandboxId, head, error }: StoredSandbox): readonly string[] {
  if (head !== undefined) return entriesOf(sandboxId, head);
  return error === undefined ? [] : [entryKey(sandboxViews.unreadable, placeOf("", sandboxId))];
}

async function* entries({ store, signal }: CollectionContext): AsyncIterable<string> {
  for await (const { key } of store.list(INDEX_FOLDER)) {
    signal?.throwIfAborted();
    if (key.split("/").length === 3) yield key;
  }
}

interface ServerKnowledge {
  readonly all: ReadonlySet<string>;
  readonly dead: ReadonlySet<string>;
  /** Whether all live servers write entries. A record that cannot be read counts as one of a server that does not. */
  readonly allKnow: boolean;
}

async function readServerKnowledge(store: ObjectStore): Promise<ServerKnowledge> {
  const [all, dead] = [new Set<string>(), new Set<string>()];
  let allKnow = true;
  for await (const key of store.listCells(INSTANCES_FOLDER)) {
    const cell = await store.readCell(key).catch(unlessDamaged);
    if (cell === undefined) continue;
    all.add(key);
    const record = cell === "damaged" ? undefined : decodeRecord(cell.body);
    if (record?.dead === true) dead.add(key);
    else if (record?.knows?.includes("index") !== true) allKnow = false;
  }
  return { all, dead, allKnow };
}

async function readIndexState(store: ObjectStore): Promise<IndexState | undefined> {
  const cell = await store.readCell(INDEX_STATE_KEY);
  return cell === undefined ? undefined : indexStateSchema.safeParse(jsonOf(cell.body)).data;
}

async function markIndex(store: ObjectStore, complete: boolean): Promise<void> {
  await changeCell<IndexState>(store, {
    key: INDEX_STATE_KEY,
    decode: (body) => indexStateSchema.parse(jsonOf(body)),
    change: (present) =>
      present?.complete === complete ? undefined : { format: 1, nonce: "", history: [], ...present, complete },
  });
}
