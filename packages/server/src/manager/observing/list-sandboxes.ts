import { asSandboxerError } from "@sandboxer/protocol";
import type { DamagedSandbox, QueryOf, Routes, SandboxRecord } from "@sandboxer/protocol";
import { sandboxViews } from "../../lease/head-entries.ts";
import { leavesNothing } from "../../lease/stored-head.ts";
import { placeOf } from "../../store/index/index-names.ts";
import type { StoreIndex } from "../../store/index/store-index.ts";
import { isStoreFailure } from "../../support/record-damage.ts";
import { mapAtOnce } from "../../support/map-at-once.ts";
import { beginAhead } from "../../support/begin-ahead.ts";
import type { ObservingContext } from "../room-contexts.ts";
import { describeHead, describeLive } from "./describe.ts";

type SandboxFilter = Omit<QueryOf<Routes["listSandboxes"]>, "limit" | "cursor">;

/** The position of an entry in a list, whether it still exists or not: newest first, then lowest id. */
export interface ListPlace {
  readonly created_at: string;
  readonly id: string;
}

export interface SandboxPage {
  readonly items: SandboxRecord[];
  /** The damaged ones among the items. None with a filter: it is unknown whether they match. */
  readonly damaged: DamagedSandbox[];
  readonly more: boolean;
}

interface PageRequest {
  readonly limit: number;
  readonly after: ListPlace | undefined;
}

const READS_AHEAD = 16;

/** The sandboxes of this server and its store, newest first. Deleted ones are listed only on request. */
export async function listSandboxes(context: ObservingContext, filter: SandboxFilter): Promise<SandboxRecord[]> {
  return (await listSandboxPage(context, filter, { limit: Infinity, after: undefined })).items;
}

/** The ids of all sandboxes of this server and its store, newest first; a few may have been deleted. No head is read. */
export async function listSandboxIds(context: ObservingContext): Promise<ReadonlySet<string>> {
  const { index } = context.durable.ownership;
  const stored = (await index.look()).sorted.flatMap(({ sandboxId }) =>
    index.isDestroyed(sandboxId) ? [] : [sandboxId],
  );
  return new Set([...context.sandboxes.keys(), ...stored]);
}

/** At most this many, after that position. */
export async function listSandboxPage(
  context: ObservingContext,
  filter: SandboxFilter,
  { limit, after }: PageRequest,
): Promise<SandboxPage> {
  const items: SandboxRecord[] = [];
  const damaged: DamagedSandbox[] = [];
  // Entries after the last item are on the next page, if there is one.
  const late: DamagedSandbox[] = [];
  for await (const found of sandboxesAfter(context, filter, { after, limit })) {
    if (isDamaged(found)) (items.length === limit ? late : damaged).push(found);
    else if (items.length === limit) return { items, damaged, more: true };
    else items.push(found);
  }
  return { items, damaged: [...damaged, ...late], more: false };
}

/**
 * Live sandboxes come from memory. For the store, the index says which sandboxes may match and their position; each
 * head is read only when its turn comes, so that nobody sees an outdated owner.
 */
async function* sandboxesAfter(
  context: ObservingContext,
  filter: SandboxFilter,
  { after, limit }: PageRequest,
): AsyncGenerator<SandboxRecord | DamagedSandbox, void, undefined> {
  const found = [...context.sandboxes.values()].map((sandbox) => describeLive(context, sandbox));
  const seen = new Set(found.map(({ id }) => id));
  const index = await context.durable.ownership.completeIndex();
  const strays = index === undefined ? [] : await readStrays(context, filter, { index, here: seen });
  for (const stray of strays) {
    seen.add(stray.id);
    if (!isDamaged(stray)) found.push(stray);
    // Their position is unknown: they are on the first page.
    else if (!isFilter(filter) && after === undefined) yield stray;
  }
  const near = found.filter((record) => matches(record, filter) && isBehind(record, after)).toSorted(newestFirst);
  let next = 0;
  // One more shows whether there is another page.
  const part = { filter, here: seen, after, wanted: limit + 1 };
  const stored = index === undefined ? storedRecords(context, part) : indexedRecords(context, part, index);
  for await (const record of stored) {
    for (; !isDamaged(record) && next < near.length && newestFirst(near[next] as SandboxRecord, record) < 0; next++)
      yield near[next] as SandboxRecord;
    yield record;
  }
  yield* near.slice(next);
}

interface StoredPart {
  readonly filter: SandboxFilter;
  /** These are shown as this server has them. */
  readonly here: ReadonlySet<string>;
  readonly after: ListPlace | undefined;
  /** How many are enough, besides damaged ones. */
  readonly wanted: number;
}

type ReadRecord = (sandboxId: string) => Promise<SandboxRecord | DamagedSandbox | undefined>;

/** From the index in the store: the views that a filter names have all sandboxes that may match. */
async function* indexedRecords(
  context: ObservingContext,
  { filter, here, after, wanted }: StoredPart,
  index: StoreIndex,
): AsyncGenerator<SandboxRecord | DamagedSandbox, void, undefined> {
  const views = viewsOf(filter);
  if (views === undefined) return;
  const read = await recordReader(context, filter);
  const isFiltered = isFilter(filter);
  const ids = index.ids(views, after && placeOf(after.created_at, after.id));
  for (let left = wanted; left > 0;) {
    const some = await take(ids, left, (id) => !here.has(id));
    if (some.length === 0) return;
    for await (const found of beginAhead(some, READS_AHEAD, read)) {
      if (found === undefined || (isDamaged(found) ? isFiltered : !matches(found, filter))) continue;
      // Damaged ones take no place on a page.
      if (!isDamaged(found)) left -= 1;
      yield found;
    }
  }
}

/**
 * Sandboxes whose head could not be read when it was last compared with the index, so that other views may lack them.
 * By now it may be repaired.
 */
async function readStrays(
  context: ObservingContext,
  filter: SandboxFilter,
  { index, here }: { readonly index: StoreIndex; readonly here: ReadonlySet<string> },
): Promise<readonly (SandboxRecord | DamagedSandbox)[]> {
  const ids = (await Array.fromAsync(index.ids([sandboxViews.unreadable]))).filter((id) => !here.has(id));
  if (ids.length === 0) return [];
  const found = await mapAtOnce(ids, READS_AHEAD, await recordReader(context, filter));
  return found.filter((each) => each !== undefined);
}

/** The states that a head can show, besides `destroyed`. */
const STATE_VIEWS: ReadonlyMap<SandboxFilter["state"], string> = new Map([
  ["running", sandboxViews.running],
  ["stored", sandboxViews.paused],
]);

/** Undefined: nothing in the store can match. */
function viewsOf({ key, name, label = [], state, backend, at_risk }: SandboxFilter): readonly string[] | undefined {
  // Only the server that runs a sandbox knows more about it.
  if (at_risk === true) return undefined;
  if (state === "destroyed") return [sandboxViews.deleted];
  const byState = STATE_VIEWS.get(state);
  if (state !== undefined && byState === undefined) return undefined;
  const views = [
    ...(key === undefined ? [] : [sandboxViews.key(key)]),
    ...(name === undefined ? [] : [sandboxViews.name(name)]),
    ...label.map(sandboxViews.label),
    ...(byState === undefined ? [] : [byState]),
    ...(backend === undefined ? [] : [sandboxViews.backend(backend)]),
  ];
  return views.length === 0 ? [sandboxViews.all] : views;
}

async function take(
  ids: AsyncIterator<string>,
  most: number,
  isWanted: (id: string) => boolean,
): Promise<readonly string[]> {
  const taken: string[] = [];
  while (taken.length < most) {
    const next = await ids.next();
    if (next.done === true) break;
    if (isWanted(next.value)) taken.push(next.value);
  }
  return taken;
}

/** From the names of all folders and the index in memory. */
async function* storedRecords(
  context: ObservingContext,
  { filter, here, after }: StoredPart,
): AsyncGenerator<SandboxRecord | DamagedSandbox, void, undefined> {
  const { ownership } = context.durable;
  const { sorted, others } = await ownership.index.look();
  const isFiltered = isFilter(filter);
  for (const { sandboxId, error } of others) {
    if (error === undefined || here.has(sandboxId)) continue;
    const damaged = damagedSandbox(context, sandboxId, error);
    // The index has never seen them, so their position is unknown: they are on the first page.
    if (!isFiltered && after === undefined) yield damaged;
  }
  for await (const found of beginAhead(mayFit(), READS_AHEAD, await recordReader(context, filter))) {
    if (found === undefined) continue;
    if (isDamaged(found) ? !isFiltered : matches(found, filter)) yield found;
  }

  function* mayFit(): Generator<string, void, undefined> {
    for (const { sandboxId, createdAt, key, backend } of sorted) {
      if (filter.key !== undefined && key !== filter.key) continue;
      if (filter.backend !== undefined && backend !== filter.backend) continue;
      if (filter.state !== "destroyed" && ownership.index.isDestroyed(sandboxId)) continue;
      if (!here.has(sandboxId) && isBehind({ created_at: createdAt, id: sandboxId }, after)) yield sandboxId;
    }
  }
}

/** Reads the record of a sandbox from its head; undefined if lists do not show it. */
async function recordReader(context: ObservingContext, filter: SandboxFilter): Promise<ReadRecord> {
  const { ownership } = context.durable;
  const servers = await ownership.instances.servers();
  const living = new Map(servers.flatMap(({ alive, instanceId, url }) => (alive ? [[instanceId, url] as const] : [])));
  return async (sandboxId) => {
    const { head, error } = await ownership.readStored(sandboxId);
    if (error !== undefined) return damagedSandbox(context, sandboxId, error);
    if (head === undefined || (head.state === "deleted" && filter.state !== "destroyed")) return undefined;
    if (leavesNothing(head) && !living.has(head.owner ?? "")) return undefined;
    try {
      return describeHead(context, sandboxId, head, living.get(head.owner ?? ""));
    } catch (error) {
      if (isStoreFailure(error)) throw error;
      return damagedSandbox(context, sandboxId, error);
    }
  };
}

function damagedSandbox(context: ObservingContext, sandboxId: string, thrown: unknown): DamagedSandbox {
  const { message, hint, details } = asSandboxerError(thrown);
  context.options.observer.problem("a stored sandbox cannot be read", { sandboxId, error: thrown });
  const object = typeof details["object"] === "string" ? details["object"] : `${sandboxId}/metadata.json`;
  return { id: sandboxId, object, message, next_step: hint };
}

function isDamaged(found: SandboxRecord | DamagedSandbox): found is DamagedSandbox {
  return "next_step" in found;
}

function isFilter({ state, backend, name, key, at_risk, label = [] }: SandboxFilter): boolean {
  return label.length > 0 || [state, backend, name, key, at_risk].some((wanted) => wanted !== undefined);
}

function isBehind(place: ListPlace, after: ListPlace | undefined): boolean {
  return after === undefined || newestFirst(after, place) < 0;
}

function matches(record: SandboxRecord, filter: SandboxFilter): boolean {
  if (filter.state !== undefined && record.state !== filter.state) return false;
  if (filter.backend !== undefined && record.backend !== filter.backend) return false;
  if (filter.name !== undefined && record.name !== filter.name) return false;
  if (filter.key !== undefined && record.key !== filter.key) return false;
  if (filter.at_risk !== undefined && (record.durability.at_risk !== null) !== filter.at_risk) return false;
  return hasLabels(record.labels, filter.label);
}

export function hasLabels(labels: Readonly<Record<string, string>>, wanted: readonly string[] | undefined): boolean {
  return (wanted ?? []).every((text) => {
    const [key = "", value] = text.split(/=(.*)/s);
    return Object.hasOwn(labels, key) && (value === undefined || labels[key] === value);
  });
}

function newestFirst(a: ListPlace, b: ListPlace): number {
  if (a.created_at !== b.created_at) return a.created_at < b.created_at ? 1 : -1;
  if (a.id === b.id) return 0;
  return a.id < b.id ? -1 : 1;
}
