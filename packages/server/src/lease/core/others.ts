import { deadRecord, type LivenessRecord, mayHaveDied } from "../liveness-record.ts";
import { BucketMap } from "../../support/bucket-map.ts";
import type { ListedRecord, Reply } from "./messages.ts";
import { DEAD_AFTER_TTLS } from "./settings.ts";
import type { StepContext } from "./step-context.ts";

/** How long something was seen unchanged, on this instance's clock. */
interface Sighting {
  readonly version: string;
  readonly sinceMs: number;
  readonly lastMs: number;
}

/**
 * A record as the lists show it: its mark takes the place of the version. A list does not show the record's content or
 * version, so the record is read when it is new, when its size says that it may be dead, and when it stands still: a
 * server that ended in order says dead once, and then no more.
 */
interface Listing extends Sighting {
  /** In the last list. */
  readonly sizeBytes: number;
  /** As the record said when it was last read. Undefined: it was not read, or this release cannot read it. */
  readonly ttlMs: number | undefined;
  /** The number of the step in which the mark was first seen. */
  readonly since: number;
  /**
   * The version that was first read after the mark was seen, the number of the step, and the time. If a list that is
   * sent later shows the mark again, the version is the one with this mark.
   */
  readonly read: { readonly version: string; readonly at: number; readonly sinceMs: number } | undefined;
}

/**
 * A record counts as unchanged only while it is watched. After a longer time without a look, because the store did not
 * answer or this process was stopped, the others get their full time again: they may not have been able to renew
 * either.
 */
const LONGEST_GAP_TTLS = 1;

/** A live server renews its record every third of a ttl. */
const READ_STILL_AFTER_TTLS = 0.5;

/**
 * A list may be older than the store says, so the mark alone does not show a death: the version must have been read so
 * long ago. A swap of that version then proves a silence that is longer than the one after which a server freezes.
 */
const READ_BEFORE_TTLS = 0.9;

/** A record that is being swapped to dead. */
interface Burial {
  readonly at: "reading" | "swapping" | "pausing";
  readonly id: number;
  /** The instance is known to be dead, so a conflict does not stop the swap. */
  readonly certain: boolean;
  readonly tickets: readonly number[];
}

/** The liveness of the others, as far as this instance knows. */
export interface OthersState {
  /** By the versions of records that were read, and by the marks in lists. Either may show a death. */
  readonly sightings: BucketMap<Sighting>;
  readonly listings: BucketMap<Listing>;
  /** Death is final. */
  readonly dead: ReadonlySet<string>;
  readonly burials: ReadonlyMap<string, Burial>;
  readonly lookTimer: number | undefined;
}

export const NO_OTHERS: OthersState = {
  sightings: BucketMap.empty(),
  listings: BucketMap.empty(),
  dead: new Set(),
  burials: new Map(),
  lookTimer: undefined,
};

/** The other instances that are alive as far as this one has seen. */
export function othersAlive({ sightings, dead }: OthersState): readonly string[] {
  return [...sightings.keys()].filter((instanceId) => !dead.has(instanceId));
}

/** All records are watched all the time, so that a dead owner is known before its sandboxes are needed. */
export function lookAround(others: OthersState, context: StepContext): OthersState {
  context.request("others", "", { kind: "list-records" });
  return { ...others, lookTimer: context.timer("others", "", context.view.settings.renewMs) };
}

export function onOthersTimer(others: OthersState, name: string, id: number, context: StepContext): OthersState {
  if (others.lookTimer === id) return lookAround(others, context);
  const burial = others.burials.get(name);
  return burial?.at === "pausing" && burial.id === id ? readForBurial(others, name, burial, context) : others;
}

export function onOthersReply(
  others: OthersState,
  name: string,
  id: number,
  reply: Reply,
  context: StepContext,
): OthersState {
  if (reply.outcome === "list") return onList(others, id, reply.records, context);
  const burial = others.burials.get(name);
  if (burial === undefined || burial.id !== id) return observe(others, name, id, reply, context);
  if (reply.outcome === "written") return buried(others, name, context);
  if (burial.at === "reading") {
    if (isDeadRecord(reply)) return buried(others, name, context);
    if (reply.outcome === "absent") return swapToDead(others, name, burial, undefined, context);
    if (reply.outcome === "record") return swapToDead(others, name, burial, reply.version, context);
    return pause(others, name, burial, context);
  }
  // A conflict shows that it lives, whatever the lists say; an unknown outcome shows at the next look.
  if (!burial.certain) {
    const listing = others.listings.get(name);
    const again = listing && { ...listing, sinceMs: context.view.nowMs, since: context.sequence, read: undefined };
    const listings = reply.outcome === "conflict" ? others.listings.with(name, again) : others.listings;
    return { ...others, listings, burials: without(others.burials, name) };
  }
  return reply.outcome === "conflict"
    ? readForBurial(others, name, burial, context)
    : pause(others, name, burial, context);
}

/** Evaluates one look at a record, for any caller: a record that was unchanged for too long is swapped to dead. */
export function observe(
  others: OthersState,
  name: string,
  id: number,
  reply: Reply,
  context: StepContext,
): OthersState {
  if (reply.outcome !== "record" || reply.record === undefined || name === context.view.me) return others;
  if (isDeadRecord(reply)) return knownDead(others, name, context);
  const { nowMs } = context.view;
  const { version } = reply;
  const ttlMs = ttlOf(reply.record);
  const sighting = seen(others.sightings.get(name), version, ttlMs, nowMs);
  const listing = others.listings.get(name);
  const next: OthersState = {
    ...others,
    sightings: others.sightings.with(name, sighting),
    listings: others.listings.with(name, listing && readListing({ ...listing, ttlMs }, version, id, context)),
  };
  return isStill(sighting, ttlMs, nowMs) ? suspect(next, name, version, context) : next;
}

/** A second version under one mark shows that the lists are late: the time begins again. */
function readListing(listing: Listing, version: string, id: number, context: StepContext): Listing {
  if (id <= listing.since || listing.read?.version === version) return listing;
  const { nowMs } = context.view;
  const read = { version, at: context.sequence, sinceMs: nowMs };
  return listing.read === undefined ? { ...listing, read } : { ...listing, read, sinceMs: nowMs };
}

function seen(known: Sighting | undefined, version: string, ttlMs: number, nowMs: number): Sighting {
  const goesOn = known?.version === version && nowMs - known.lastMs <= LONGEST_GAP_TTLS * ttlMs;
  return { version, sinceMs: goesOn ? known.sinceMs : nowMs, lastMs: nowMs };
}

function isStill({ sinceMs }: Sighting, ttlMs: number, nowMs: number): boolean {
  return nowMs - sinceMs >= DEAD_AFTER_TTLS * ttlMs;
}

/** Its record was unchanged for too long. If it has been renewed since, the swap is a conflict. */
function suspect(others: OthersState, name: string, version: string, context: StepContext): OthersState {
  if (others.burials.has(name)) return others;
  return swapToDead(others, name, { at: "swapping", id: 0, certain: false, tickets: [] }, version, context);
}

/** For an instance that is known to be dead: the lock of its run directory is free, or its record is missing. */
export function buryCertainly(
  others: OthersState,
  name: string,
  ticket: number | undefined,
  context: StepContext,
): OthersState {
  const tickets = ticket === undefined ? [] : [ticket];
  if (others.dead.has(name)) {
    for (const each of tickets) context.tell({ kind: "buried", ticket: each });
    return others;
  }
  const present = others.burials.get(name);
  if (present !== undefined) {
    const burial: Burial = { ...present, certain: true, tickets: [...present.tickets, ...tickets] };
    return { ...others, burials: new Map(others.burials).set(name, burial) };
  }
  return readForBurial(others, name, { at: "reading", id: 0, certain: true, tickets }, context);
}

function onList(before: OthersState, id: number, records: readonly ListedRecord[], context: StepContext): OthersState {
  const { me, nowMs } = context.view;
  const listings = new Map<string, Listing>();
  for (const record of records) {
    const { instanceId: name } = record;
    if (name !== me && !before.dead.has(name)) listings.set(name, listed(before.listings.get(name), record, context));
  }
  let others: OthersState = { ...before, listings: BucketMap.of(listings) };
  for (const name of before.sightings.keys()) {
    if (!listings.has(name)) others = { ...others, sightings: others.sightings.with(name, undefined) };
  }
  for (const [name, listing] of listings) {
    const { read, ttlMs } = listing;
    const isKnown = read !== undefined && id > read.at && ttlMs !== undefined;
    if (!isKnown || !isStill(listing, ttlMs, nowMs)) continue;
    if (nowMs - read.sinceMs >= READ_BEFORE_TTLS * ttlMs) others = suspect(others, name, read.version, context);
  }
  return others;
}

function listed(known: Listing | undefined, record: ListedRecord, context: StepContext): Listing {
  const { instanceId, mark, sizeBytes } = record;
  const { nowMs, settings } = context.view;
  const ttlMs = known?.ttlMs ?? settings.ttlMs;
  const sighting = seen(known, mark, ttlMs, nowMs);
  const isSame = known?.version === mark && sighting.sinceMs === known.sinceMs;
  const since = isSame ? known.since : context.sequence;
  const read = isSame ? known.read : undefined;
  const isDue =
    known?.ttlMs === undefined ||
    mayHaveDied(known.sizeBytes, sizeBytes) ||
    (read === undefined && nowMs - sighting.sinceMs >= READ_STILL_AFTER_TTLS * ttlMs);
  if (isDue) context.request("others", instanceId, { kind: "read-record", instanceId });
  return { ...sighting, sizeBytes, ttlMs: known?.ttlMs, since, read };
}

function readForBurial(others: OthersState, name: string, burial: Burial, context: StepContext): OthersState {
  const id = context.request("others", name, { kind: "read-record", instanceId: name });
  return { ...others, burials: new Map(others.burials).set(name, { ...burial, at: "reading", id }) };
}

function swapToDead(
  others: OthersState,
  name: string,
  burial: Burial,
  expected: string | undefined,
  context: StepContext,
): OthersState {
  const next = deadRecord(context.view.me, context.nonce());
  const id = context.request("others", name, { kind: "swap-record", instanceId: name, expected, next });
  return { ...others, burials: new Map(others.burials).set(name, { ...burial, at: "swapping", id }) };
}

function pause(others: OthersState, name: string, burial: Burial, context: StepContext): OthersState {
  const id = context.timer("others", name, context.view.settings.renewRetryMs);
  return { ...others, burials: new Map(others.burials).set(name, { ...burial, at: "pausing", id }) };
}

function buried(others: OthersState, name: string, context: StepContext): OthersState {
  for (const ticket of others.burials.get(name)?.tickets ?? []) context.tell({ kind: "buried", ticket });
  return knownDead({ ...others, burials: without(others.burials, name) }, name, context);
}

function knownDead(others: OthersState, name: string, context: StepContext): OthersState {
  if (others.dead.has(name)) return others;
  context.tell({ kind: "died", instanceId: name });
  const { sightings, listings } = others;
  return {
    ...others,
    dead: new Set(others.dead).add(name),
    sightings: sightings.with(name, undefined),
    listings: listings.with(name, undefined),
  };
}

function isDeadRecord(reply: Reply): boolean {
  return reply.outcome === "record" && reply.record?.dead === true;
}

function ttlOf(record: LivenessRecord): number {
  return record.dead === true ? 0 : record.ttl_ms;
}

function without<Value>(map: ReadonlyMap<string, Value>, key: string): ReadonlyMap<string, Value> {
  const next = new Map(map);
  next.delete(key);
  return next;
}
