import { deadRecord, type LivenessRecord } from "../liveness-record.ts";
import type { Reply } from "./messages.ts";
import { DEAD_AFTER_TTLS } from "./settings.ts";
import type { StepContext } from "./step-context.ts";

interface Sighting {
  readonly version: string;
  /** When this version was first seen, on this instance's clock. */
  readonly sinceMs: number;
  readonly lastMs: number;
}

/**
 * A record counts as unchanged only while it is watched. After a longer time without a look, because the store did not
 * answer or this process was stopped, the others get their full time again: they may not have been able to renew
 * either.
 */
const LONGEST_GAP_TTLS = 1;

/** A record that is being swapped to dead. */
interface Burial {
  readonly at: "reading" | "swapping" | "pausing";
  readonly id: number;
  /** The instance is known to be dead, so a conflict does not stop the swap. */
  readonly certain: boolean;
  readonly tickets: readonly number[];
}

/** What this instance knows about the liveness of the others. */
export interface OthersState {
  readonly sightings: ReadonlyMap<string, Sighting>;
  /** Death is final. */
  readonly dead: ReadonlySet<string>;
  readonly burials: ReadonlyMap<string, Burial>;
  readonly lookTimer: number | undefined;
}

export const NO_OTHERS: OthersState = {
  sightings: new Map(),
  dead: new Set(),
  burials: new Map(),
  lookTimer: undefined,
};

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
  if (reply.outcome === "list") return onList(others, reply.instanceIds, context);
  const burial = others.burials.get(name);
  if (burial === undefined || burial.id !== id) return observe(others, name, reply, context);
  if (reply.outcome === "written") return buried(others, name, context);
  if (burial.at === "reading") {
    if (isDeadRecord(reply)) return buried(others, name, context);
    if (reply.outcome === "absent") return swapToDead(others, name, burial, undefined, context);
    if (reply.outcome === "record") return swapToDead(others, name, burial, reply.version, context);
    return pause(others, name, burial, context);
  }
  // A conflict shows that it lives; an unknown outcome shows at the next look.
  if (!burial.certain) return { ...others, burials: without(others.burials, name) };
  return reply.outcome === "conflict"
    ? readForBurial(others, name, burial, context)
    : pause(others, name, burial, context);
}

/**
 * Evaluates one look at a record, whoever asked for it: a record that was unchanged for too long is swapped to dead.
 */
export function observe(others: OthersState, name: string, reply: Reply, context: StepContext): OthersState {
  if (reply.outcome !== "record" || reply.record === undefined || name === context.view.me) return others;
  if (isDeadRecord(reply)) return knownDead(others, name);
  const { nowMs } = context.view;
  const ttlMs = ttlOf(reply.record);
  const known = others.sightings.get(name);
  const goesOn = known?.version === reply.version && nowMs - known.lastMs <= LONGEST_GAP_TTLS * ttlMs;
  const sinceMs = goesOn ? known.sinceMs : nowMs;
  const sightings = new Map(others.sightings).set(name, { version: reply.version, sinceMs, lastMs: nowMs });
  const seen: OthersState = { ...others, sightings };
  if (nowMs - sinceMs < DEAD_AFTER_TTLS * ttlMs || others.burials.has(name)) return seen;
  return swapToDead(seen, name, { at: "swapping", id: 0, certain: false, tickets: [] }, reply.version, context);
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

function onList(others: OthersState, instanceIds: readonly string[], context: StepContext): OthersState {
  const listed = new Set(instanceIds);
  for (const name of listed) {
    if (name !== context.view.me && !others.dead.has(name)) {
      context.request("others", name, { kind: "read-record", instanceId: name });
    }
  }
  const sightings = new Map([...others.sightings].filter(([name]) => listed.has(name)));
  return { ...others, sightings };
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
  return knownDead({ ...others, burials: without(others.burials, name) }, name);
}

function knownDead(others: OthersState, name: string): OthersState {
  if (others.dead.has(name)) return others;
  return { ...others, dead: new Set(others.dead).add(name), sightings: without(others.sightings, name) };
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
