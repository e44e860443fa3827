import type { EventRecord, SandboxRecord } from "@sandboxer/client";

/** A period in which a sandbox was in one state, as far as this server knows. */
export interface Band {
  readonly state: string;
  readonly startMs: number;
  readonly endMs: number;
  /** Whether it still lasts. */
  readonly now: boolean;
}

interface StateStart {
  readonly state: string;
  readonly startMs: number;
}

/**
 * The states of a sandbox in order. After it left this server, it is stored, on another server, or ended; earlier
 * states than the server's first event are unknown.
 */
export function bandsOf(
  events: readonly EventRecord[],
  record: Pick<SandboxRecord, "state" | "frozen" | "owner" | "createdAt">,
  nowMs: number,
): readonly Band[] {
  const starts: StateStart[] = [];
  let saved = false;
  let handedTo: string | undefined;
  for (const { type, time, data } of events) {
    const startMs = Date.parse(time);
    if (type === "checkpoint.created") saved = true;
    else if (type === "sandbox.handed_over") handedTo = String(data["to"]);
    else if (type === "sandbox.frozen") starts.push({ state: "frozen", startMs });
    else if (type === "sandbox.thawed") starts.push({ state: "running", startMs });
    // Reported right after it ended: it was not stored in between.
    if (type === "sandbox.handed_over" && starts.at(-1)?.state === "stored") {
      starts[starts.length - 1] = { state: elsewhere(handedTo), startMs: starts.at(-1)?.startMs ?? startMs };
    }
    if (type !== "sandbox.state") continue;
    const [from, to] = [data["from"], String(data["to"])];
    if (starts.length === 0 && typeof from === "string" && from !== "gone") {
      starts.push({ state: from, startMs: Math.min(startMs, Date.parse(record.createdAt)) });
    }
    const gone = handedTo === undefined ? (saved ? "stored" : "ended") : elsewhere(handedTo);
    starts.push({ state: to === "gone" ? gone : to, startMs });
    if (to === "running") [saved, handedTo] = [false, undefined];
  }
  if (starts.length === 0) starts.push({ state: "unknown", startMs: Date.parse(record.createdAt) });
  return close(withPresent(starts, record, nowMs), nowMs);
}

/** The record decides for now: other servers send this one no events. */
function withPresent(
  starts: readonly StateStart[],
  { state, frozen, owner }: Pick<SandboxRecord, "state" | "frozen" | "owner">,
  nowMs: number,
): readonly StateStart[] {
  const present = owner?.here === false ? elsewhere(owner.instanceId) : frozen ? "frozen" : state;
  const last = starts.at(-1);
  if (last === undefined || last.state === present) return starts;
  if (last.state === "unknown") return [{ ...last, state: present }];
  // It was away, or an event is still to come.
  const left = ["stored", "ended"].includes(last.state) || last.state.startsWith("at ");
  return left ? [...starts.slice(0, -1), { ...last, state: present }] : [...starts, { state: present, startMs: nowMs }];
}

function elsewhere(instanceId: string | undefined): string {
  return `at ${instanceId ?? "another server"}`;
}

function close(starts: readonly StateStart[], nowMs: number): readonly Band[] {
  const bands: Band[] = [];
  for (const [index, { state, startMs }] of starts.entries()) {
    const next = starts[index + 1];
    const endMs = Math.max(startMs, next?.startMs ?? nowMs);
    const before = bands.at(-1);
    if (before?.state === state) bands[bands.length - 1] = { ...before, endMs, now: next === undefined };
    else bands.push({ state, startMs, endMs, now: next === undefined });
  }
  return bands;
}
