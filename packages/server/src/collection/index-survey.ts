import { SandboxerError } from "@sandboxer/protocol";
import { changeCell } from "../checkpoints/snapshot-cell.ts";
import { snapshotEntries } from "../checkpoints/snapshot-entries.ts";
import { entriesOf, isVoid, sandboxViews } from "../lease/head-entries.ts";
import { instanceKey } from "../lease/liveness-record.ts";
import { listStoredSandboxes, readStoredSandbox, type StoredSandbox } from "../lease/stored-sandboxes.ts";
import { entryKey, INDEX_FOLDER, parseName, placeOf } from "../store/index/index-names.ts";
import {
  INDEX_STATE_KEY,
  type IndexState,
  indexStateSchema,
  namesIn,
  readIndexState,
  WRITERS_FOLDER,
} from "../store/index/store-index.ts";
import type { ObjectStore } from "../store/store.ts";
import { jsonOf } from "../support/json.ts";
import { mapAtOnce } from "../support/map-at-once.ts";
import { readRecord, type SightedSnapshot, sightSnapshots } from "./collect-snapshots.ts";
import type { CollectionContext, IndexFindings } from "./garbage.ts";
import { NameSet } from "./name-set.ts";
import { readServers } from "./servers.ts";

const CHANGED_AT_ONCE = 64;
const READS_AT_ONCE = 16;
/** An entry without its head may belong to a creation in progress. After this long it is abandoned. */
const ABANDONED_MS = 3_600_000;
/** Others are judged by later comparisons. */
const MOST_REMEMBERED = 100_000;

/** Compares the index of a store with its heads and snapshot records, and repairs it. Remembers for the next time. */
export class IndexSurveyor {
  /** Entries that nothing confirmed, and when that was first seen (monotonic). */
  readonly #unconfirmed = new Map<string, number>();

  /**
   * Builds an index that does not exist, or adds what dead servers without entries wrote. While such a server lives,
   * readers do without the index.
   */
  async attend(context: CollectionContext): Promise<void> {
    const [state, { living, dead }] = [await readIndexState(context.store), await readStrangers(context.store)];
    if (living.length > 0 || state === "unreadable") return;
    const examined = new Set(state === "absent" ? [] : state.examined);
    if (state === "absent" || dead.some((instanceId) => !examined.has(instanceId))) await this.compare(context);
  }

  /** Reads all heads and records. */
  async compare(context: CollectionContext): Promise<IndexFindings> {
    const comparison = await this.begin(context);
    for await (const stored of listStoredSandboxes(context.store)) await comparison.head(stored);
    return await comparison.end(await sightSnapshots(context));
  }

  /** For a caller that reads all heads itself, from now on. */
  async begin(context: CollectionContext): Promise<IndexComparison> {
    const { dead } = await readStrangers(context.store);
    const state = await readIndexState(context.store);
    if (state === "unreadable") throw unknownIndex();
    const isBuilt = state !== "absent";
    const listed = new NameSet();
    for await (const key of entries(context)) listed.add(key);
    return new IndexComparison(context, { unconfirmed: this.#unconfirmed, listed, isBuilt, examined: dead });
  }
}

interface Known {
  readonly unconfirmed: Map<string, number>;
  /** Before the heads were read. */
  readonly listed: NameSet;
  /** Otherwise everything is missing. */
  readonly isBuilt: boolean;
  /** Servers without entries that were dead before the heads were read. */
  readonly examined: readonly string[];
}

export class IndexComparison {
  readonly #context: CollectionContext;
  readonly #known: Known;
  readonly #needed = new NameSet();
  #missing: string[] = [];
  #missingCount = 0;

  constructor(context: CollectionContext, known: Known) {
    this.#context = context;
    this.#known = known;
  }

  async head(stored: StoredSandbox): Promise<void> {
    await this.#need(entriesOfStored(stored));
  }

  async end(snapshots: readonly SightedSnapshot[]): Promise<IndexFindings> {
    for (const { record } of snapshots) if (typeof record !== "string") await this.#need(snapshotEntries(record));
    await this.#add();
    const rest = await this.#judgeRest();
    if (this.#context.apply) {
      await markExamined(this.#context.store, this.#known.examined);
      await forgetWriters(this.#context.store);
    }
    return { missing: this.#missingCount, ...rest };
  }

  async #need(keys: readonly string[]): Promise<void> {
    for (const key of keys) {
      this.#needed.add(key);
      if (!this.#known.listed.has(key)) this.#missing.push(key);
    }
    if (this.#missing.length >= CHANGED_AT_ONCE) await this.#add();
  }

  /** The head may have changed since: then the entry is outdated, which is harmless. */
  async #add(): Promise<void> {
    const { store, apply, signal } = this.#context;
    const unlisted = this.#missing.splice(0);
    // Most that were not listed were added since.
    const isMissing = async (key: string): Promise<string[]> =>
      this.#known.isBuilt && (await store.stat(key)) !== undefined ? [] : [key];
    const missing = (await mapAtOnce(unlisted, READS_AT_ONCE, isMissing, signal)).flat();
    this.#missingCount += missing.length;
    if (apply && missing.length > 0) await store.addNames(missing);
  }

  /** Entries that none of the heads and records needed when they were read. */
  async #judgeRest(): Promise<Omit<IndexFindings, "missing">> {
    const { store, signal } = this.#context;
    const { unconfirmed } = this.#known;
    const strange: string[] = [];
    for await (const key of entries(this.#context)) {
      if (!this.#needed.has(key)) strange.push(key);
      else unconfirmed.delete(key);
    }
    const outdated: string[] = [];
    let unconfirmedCount = 0;
    const judgeOne = async (key: string): Promise<void> => {
      const verdict = await judge(store, key);
      if (verdict === "needed") unconfirmed.delete(key);
      else if (verdict === "void" || this.#isAbandoned(key)) outdated.push(key);
      else unconfirmedCount += 1;
    };
    await mapAtOnce(strange, READS_AT_ONCE, judgeOne, signal);
    if (this.#context.apply) await this.#remove(outdated);
    return { outdated: outdated.length, unconfirmed: unconfirmedCount };
  }

  #isAbandoned(key: string): boolean {
    const { unconfirmed } = this.#known;
    const nowMs = this.#context.clock.monotonicMs();
    const sinceMs = unconfirmed.get(key);
    if (sinceMs === undefined && unconfirmed.size < MOST_REMEMBERED) unconfirmed.set(key, nowMs);
    return sinceMs !== undefined && nowMs - sinceMs >= ABANDONED_MS;
  }

  /** A writer that was stalled for an hour may have written its head since it was read. */
  async #remove(keys: readonly string[]): Promise<void> {
    const { store, signal } = this.#context;
    for (let at = 0; at < keys.length; at += CHANGED_AT_ONCE) {
      signal?.throwIfAborted();
      const some = keys.slice(at, at + CHANGED_AT_ONCE);
      await store.removeNames(some);
      const judged = await mapAtOnce(some, READS_AT_ONCE, async (key) => [key, await judge(store, key)] as const);
      const needed = judged.flatMap(([key, verdict]) => (verdict === "needed" ? [key] : []));
      if (needed.length > 0) await store.addNames(needed);
      for (const key of some) this.#known.unconfirmed.delete(key);
    }
  }
}

/**
 * Whether an entry is needed by now, can never be needed again, or may be needed by a write in progress. Entries of a
 * head or record that cannot be read stay: somebody may repair it.
 */
async function judge(store: ObjectStore, key: string): Promise<"needed" | "void" | "unknown"> {
  const [, view = "", name = ""] = key.split("/");
  const id = parseName(name)?.id;
  if (id === undefined) return "unknown";
  if (view.startsWith("snapshots")) {
    const { record } = await readRecord(store, id);
    if (record === "absent") return "unknown";
    return record === "unreadable" || snapshotEntries(record).includes(key) ? "needed" : "void";
  }
  const stored = await readStoredSandbox(store, id);
  if (stored.error !== undefined || entriesOfStored(stored).includes(key)) return "needed";
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
    if (key !== INDEX_STATE_KEY && !key.startsWith(`${WRITERS_FOLDER}/`)) yield key;
  }
}

/** Servers that write no entries, by their liveness records. One that has just started may not have said so yet. */
async function readStrangers(store: ObjectStore): Promise<Record<"living" | "dead", readonly string[]>> {
  const { living, dead } = await readServers(store);
  const writers = new Set(await Array.fromAsync(namesIn(store, WRITERS_FOLDER)));
  const strange = (ids: ReadonlySet<string>): string[] => [...ids].filter((instanceId) => !writers.has(instanceId));
  return { living: strange(living), dead: strange(dead) };
}

/** A server writes its name after its record, and records of living servers stay. */
async function forgetWriters(store: ObjectStore): Promise<void> {
  const gone: string[] = [];
  for await (const instanceId of namesIn(store, WRITERS_FOLDER)) {
    if ((await store.readCell(instanceKey(instanceId)).catch(() => "unknown")) === undefined)
      gone.push(`${WRITERS_FOLDER}/${instanceId}`);
  }
  if (gone.length > 0) await store.removeNames(gone);
}

function unknownIndex(): SandboxerError {
  return new SandboxerError(
    "not_supported",
    `This release cannot read ${INDEX_STATE_KEY}, so it leaves the index alone.`,
    {
      hint: "Update this server. If no server of the store is newer, the record is damaged: delete it, and the index is built again.",
      details: { object: INDEX_STATE_KEY },
    },
  );
}

async function markExamined(store: ObjectStore, examined: readonly string[]): Promise<void> {
  await changeCell<IndexState>(store, {
    key: INDEX_STATE_KEY,
    decode: (body) => indexStateSchema.parse(jsonOf(body)),
    change: (present) => {
      const isSame = present !== undefined && [...present.examined].toSorted().join() === examined.toSorted().join();
      return isSame ? undefined : { format: 1, nonce: "", history: [], ...present, examined: [...examined] };
    },
  });
}
