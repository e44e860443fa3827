import type { EventRecord, SandboxRecord } from "@sandboxer/client";

/** A time in which a sandbox was in one state, as far as this server knows. */
export interface Band {
  readonly state: string;
  readonly startMs: number;
  readonly endMs: number;
  /** Whether it lasts. */
  readonly now: boolean;
}

interface Turn {
  readonly state: string;
  readonly startMs: number;
}

/**
 * The states of a sandbox, one after the other. When it has left this server, it is stored, at another server, or ended;
 * what came before the server's first memory of it is not known.
 */
export function bandsOf(
  events: readonly EventRecord[],
  record: Pick<SandboxRecord, "state" | "frozen" | "owner" | "createdAt">,
  nowMs: number,
): readonly Band[] {
  const turns: Turn[] = [];
  let saved = false;
  let handedTo: string | undefined;
  for (const { type, time, data } of events) {
    const startMs = Date.parse(time);
    if (type === "checkpoint.created") saved = true;
    else if (type === "sandbox.handed_over") handedTo = String(data["to"]);
    else if (type === "sandbox.frozen") turns.push({ state: "frozen", startMs });
    else if (type === "sandbox.thawed") turns.push({ state: "running", startMs });
    // Told right after it is gone: it did not rest in the store.
    if (type === "sandbox.handed_over" && turns.at(-1)?.state === "stored") {
      turns[turns.length - 1] = { state: elsewhere(handedTo), startMs: turns.at(-1)?.startMs ?? startMs };
    }
    if (type !== "sandbox.state") continue;
    const [from, to] = [data["from"], String(data["to"])];
    if (turns.length === 0 && typeof from === "string" && from !== "gone") {
      turns.push({ state: from, startMs: Math.min(startMs, Date.parse(record.createdAt)) });
    }
    const gone = handedTo === undefined ? (saved ? "stored" : "ended") : elsewhere(handedTo);
    turns.push({ state: to === "gone" ? gone : to, startMs });
    if (to === "running") [saved, handedTo] = [false, undefined];
  }
  if (turns.length === 0) turns.push({ state: "unknown", startMs: Date.parse(record.createdAt) });
  return close(withPresent(turns, record, nowMs), nowMs);
}

/** What the record says counts for now: other servers tell this one nothing. */
function withPresent(
  turns: readonly Turn[],
  { state, frozen, owner }: Pick<SandboxRecord, "state" | "frozen" | "owner">,
  nowMs: number,
): readonly Turn[] {
  const present = owner?.here === false ? elsewhere(owner.instanceId) : frozen ? "frozen" : state;
  const last = turns.at(-1);
  if (last === undefined || last.state === present) return turns;
  if (last.state === "unknown") return [{ ...last, state: present }];
  // Away and back at a place that it was not seen to go to, or an event that is still to come.
  const left = ["stored", "ended"].includes(last.state) || last.state.startsWith("at ");
  return left ? [...turns.slice(0, -1), { ...last, state: present }] : [...turns, { state: present, startMs: nowMs }];
}

function elsewhere(instanceId: string | undefined): string {
  return `at ${instanceId ?? "another server"}`;
}

function close(turns: readonly Turn[], nowMs: number): readonly Band[] {
  const bands: Band[] = [];
  for (const [index, { state, startMs }] of turns.entries()) {
    const next = turns[index + 1];
    const endMs = Math.max(startMs, next?.startMs ?? nowMs);
    const before = bands.at(-1);
    if (before?.state === state) bands[bands.length - 1] = { ...before, endMs, now: next === undefined };
    else bands.push({ state, startMs, endMs, now: next === undefined });
  }
  return bands;
}
