import { asSandboxerError } from "@sandboxer/protocol";
import type { DamagedSandbox, QueryOf, Routes, SandboxRecord } from "@sandboxer/protocol";
import { leavesNothing } from "../../lease/stored-head.ts";
import { isStoreFailure } from "../../support/record-damage.ts";
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
  { limit, after }: { readonly limit: number; readonly after: ListPlace | undefined },
): Promise<SandboxPage> {
  const items: SandboxRecord[] = [];
  const damaged: DamagedSandbox[] = [];
  // Entries after the last item are on the next page, if there is one.
  const late: DamagedSandbox[] = [];
  for await (const found of sandboxesAfter(context, filter, after)) {
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
  after: ListPlace | undefined,
): AsyncGenerator<SandboxRecord | DamagedSandbox, void, undefined> {
  const found = [...context.sandboxes.values()].map((sandbox) => describeLive(context, sandbox));
  const seen = new Set(found.map(({ id }) => id));
  const near = found.filter((record) => matches(record, filter) && isBehind(record, after)).toSorted(newestFirst);
  let next = 0;
  for await (const record of storedRecords(context, filter, seen, after)) {
    for (; !isDamaged(record) && next < near.length && newestFirst(near[next] as SandboxRecord, record) < 0; next++)
      yield near[next] as SandboxRecord;
    yield record;
  }
  yield* near.slice(next);
}

async function* storedRecords(
  context: ObservingContext,
  filter: SandboxFilter,
  here: ReadonlySet<string>,
  after: ListPlace | undefined,
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
  const servers = await ownership.instances.servers();
  const living = new Map(servers.flatMap(({ alive, instanceId, url }) => (alive ? [[instanceId, url] as const] : [])));
  const read = async (sandboxId: string): Promise<SandboxRecord | DamagedSandbox | undefined> => {
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
  for await (const found of beginAhead(mayFit(), READS_AHEAD, read)) {
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
