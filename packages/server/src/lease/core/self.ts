import { deadRecord, type LivenessRecord, liveRecord } from "../liveness-record.ts";
import type { Reply } from "./messages.ts";
import type { Turn } from "./turn.ts";

/** A write of the own record that has no answer yet. It is repeated as it is until it has one. */
interface RecordAttempt {
  readonly record: LivenessRecord;
  /** Before it was sent for the first time: it may have been applied at any moment since then. */
  readonly sentMs: number;
  readonly at: "swapping" | "settling" | "pausing";
  readonly id: number;
}

/** This instance's own liveness. */
export interface SelfState {
  readonly condition: "registering" | "alive" | "closing" | "ended";
  readonly version: string | undefined;
  readonly beat: number;
  /** Just before the last good renewal was sent. */
  readonly goodSinceMs: number | undefined;
  /** As the manager was told. */
  readonly frozen: boolean;
  readonly attempt: RecordAttempt | undefined;
  readonly renewalTimer: number | undefined;
  readonly closeTicket: number | undefined;
}

export type SelfStep = { readonly self: SelfState } | { readonly fencedBecause: string };

const NOTHING: SelfState = {
  condition: "registering",
  version: undefined,
  beat: 0,
  goodSinceMs: undefined,
  frozen: false,
  attempt: undefined,
  renewalTimer: undefined,
  closeTicket: undefined,
};

export function startSelf(turn: Turn): SelfState {
  return renew(NOTHING, turn);
}

/** Whether nothing may run now. Asked at every emission, because a stalled process does not notice its timers. */
export function isFrozen(self: SelfState, freezeMs: number, nowMs: number): boolean {
  return self.goodSinceMs === undefined || nowMs - self.goodSinceMs >= freezeMs;
}

export function onSelfTimer(self: SelfState, id: number, turn: Turn): SelfState {
  if (self.attempt?.at === "pausing" && self.attempt.id === id) return send(self, self.attempt, turn);
  if (self.renewalTimer === id && self.condition === "alive" && self.attempt === undefined) return renew(self, turn);
  return self;
}

/** Says once that the time is up. Timers of earlier renewals come to nothing. */
export function noticeFreeze(self: SelfState, heldIds: () => readonly string[], turn: Turn): SelfState {
  if (self.frozen || self.condition !== "alive") return self;
  if (!isFrozen(self, turn.view.settings.freezeMs, turn.view.nowMs)) return self;
  turn.tell({ kind: "frozen", sandboxIds: heldIds() });
  return { ...self, frozen: true };
}

export function closeSelf(self: SelfState, ticket: number, turn: Turn): SelfState {
  if (self.condition === "ended") {
    turn.tell({ kind: "closed", ticket });
    return self;
  }
  const closing: SelfState = { ...self, condition: "closing", closeTicket: ticket };
  // A renewal under way is awaited: its version is the one to replace.
  return closing.attempt === undefined ? bury(closing, turn) : closing;
}

export function onSelfReply(
  self: SelfState,
  id: number,
  reply: Reply,
  heldIds: () => readonly string[],
  turn: Turn,
): SelfStep {
  const { attempt } = self;
  if (attempt === undefined || attempt.id !== id) return { self };
  if (attempt.at === "swapping") {
    if (reply.outcome === "written") return { self: confirmed(self, attempt, reply.version, heldIds, turn) };
    // Also a conflict may be one with this very write.
    return { self: settle(self, attempt, turn) };
  }
  if (reply.outcome === "absent" && self.version === undefined) return { self: pause(self, attempt, turn) };
  if (reply.outcome === "record" && reply.record?.nonce === attempt.record.nonce) {
    return { self: confirmed(self, attempt, reply.version, heldIds, turn) };
  }
  if (reply.outcome === "record" && reply.version === self.version) return { self: pause(self, attempt, turn) };
  if (reply.outcome === "record" || reply.outcome === "absent") {
    if (self.condition === "closing") return { self: ended(self, turn) };
    return { fencedBecause: reasonOf(reply) };
  }
  return { self: pause(self, attempt, turn) };
}

function reasonOf(reply: Reply): string {
  if (reply.outcome === "record" && reply.record?.dead === true) return `was declared dead by ${reply.record.by}`;
  return "was replaced in the store";
}

function renew(self: SelfState, turn: Turn): SelfState {
  const { url, ttlMs } = turn.view.settings;
  const beat = self.beat + 1;
  return begin({ ...self, beat }, liveRecord(url, beat, ttlMs, turn.nonce()), turn);
}

function bury(self: SelfState, turn: Turn): SelfState {
  return begin(self, deadRecord(turn.view.me, turn.nonce()), turn);
}

function begin(self: SelfState, record: LivenessRecord, turn: Turn): SelfState {
  return send(self, { record, sentMs: turn.view.nowMs, at: "swapping", id: 0 }, turn);
}

/** The same bytes again exclude, by the version, an earlier copy that may still arrive. */
function send(self: SelfState, attempt: RecordAttempt, turn: Turn): SelfState {
  const id = turn.request("self", "", {
    kind: "swap-record",
    instanceId: turn.view.me,
    expected: self.version,
    next: attempt.record,
  });
  return { ...self, attempt: { ...attempt, at: "swapping", id } };
}

function settle(self: SelfState, attempt: RecordAttempt, turn: Turn): SelfState {
  const id = turn.request("self", "", { kind: "read-record", instanceId: turn.view.me });
  return { ...self, attempt: { ...attempt, at: "settling", id } };
}

function pause(self: SelfState, attempt: RecordAttempt, turn: Turn): SelfState {
  const id = turn.timer("self", "", turn.view.settings.renewRetryMs);
  return { ...self, attempt: { ...attempt, at: "pausing", id } };
}

function confirmed(
  self: SelfState,
  attempt: RecordAttempt,
  version: string,
  heldIds: () => readonly string[],
  turn: Turn,
): SelfState {
  const known: SelfState = { ...self, version, attempt: undefined };
  if (attempt.record.dead === true) return ended(known, turn);
  if (self.condition === "closing") return bury(known, turn);
  const { renewMs, freezeMs } = turn.view.settings;
  const { nowMs } = turn.view;
  const { sentMs } = attempt;
  if (self.condition === "registering") turn.tell({ kind: "registered", instanceId: turn.view.me });
  const still = nowMs - sentMs >= freezeMs;
  if (self.frozen && !still) turn.tell({ kind: "thawed", sandboxIds: heldIds() });
  turn.timer("self", "", sentMs + freezeMs - nowMs);
  const renewalTimer = turn.timer("self", "", sentMs + renewMs - nowMs);
  return { ...known, condition: "alive", goodSinceMs: sentMs, frozen: self.frozen && still, renewalTimer };
}

function ended(self: SelfState, turn: Turn): SelfState {
  if (self.closeTicket !== undefined) turn.tell({ kind: "closed", ticket: self.closeTicket });
  return { ...self, condition: "ended", attempt: undefined };
}
