import { deadRecord, type LivenessRecord, liveRecord } from "../liveness-record.ts";
import type { Reply } from "./messages.ts";
import type { StepContext } from "./step-context.ts";

/** A write of the own record without an answer. It is repeated unchanged until it has one. */
interface RecordAttempt {
  readonly record: LivenessRecord;
  /** Before it was first sent: it may have been applied at any moment since then. */
  readonly sentMs: number;
  readonly at: "swapping" | "settling" | "pausing";
  readonly id: number;
}

/** This instance's own liveness. */
export interface SelfState {
  readonly condition: "registering" | "alive" | "closing" | "ended";
  readonly version: string | undefined;
  readonly beat: number;
  /** Just before the last confirmed renewal was sent. */
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

export function startSelf(context: StepContext): SelfState {
  return renew(NOTHING, context);
}

/** Whether nothing may run now. Checked at every emission, because a stalled process does not notice its timers. */
export function isFrozen(self: SelfState, freezeMs: number, nowMs: number): boolean {
  return self.goodSinceMs === undefined || nowMs - self.goodSinceMs >= freezeMs;
}

export function onSelfTimer(self: SelfState, id: number, context: StepContext): SelfState {
  if (self.attempt?.at === "pausing" && self.attempt.id === id) return send(self, self.attempt, context);
  if (self.renewalTimer === id && self.condition === "alive" && self.attempt === undefined) return renew(self, context);
  return self;
}

/** Reports once that the time is up. Timers of earlier renewals have no effect. */
export function noticeFreeze(self: SelfState, heldIds: () => readonly string[], context: StepContext): SelfState {
  if (self.frozen || self.condition !== "alive") return self;
  if (!isFrozen(self, context.view.settings.freezeMs, context.view.nowMs)) return self;
  context.tell({ kind: "frozen", sandboxIds: heldIds() });
  return { ...self, frozen: true };
}

export function closeSelf(self: SelfState, ticket: number, context: StepContext): SelfState {
  if (self.condition === "ended") {
    context.tell({ kind: "closed", ticket });
    return self;
  }
  const closing: SelfState = { ...self, condition: "closing", closeTicket: ticket };
  // A renewal in progress is awaited: its version is the one to replace.
  return closing.attempt === undefined ? bury(closing, context) : closing;
}

export function onSelfReply(
  self: SelfState,
  id: number,
  reply: Reply,
  heldIds: () => readonly string[],
  context: StepContext,
): SelfStep {
  const { attempt } = self;
  if (attempt === undefined || attempt.id !== id) return { self };
  if (attempt.at === "swapping") {
    if (reply.outcome === "written") return { self: confirmed(self, attempt, reply.version, heldIds, context) };
    // A conflict may also be with this very write.
    return { self: settle(self, attempt, context) };
  }
  if (reply.outcome === "absent" && self.version === undefined) return { self: pause(self, attempt, context) };
  if (reply.outcome === "record" && reply.record?.nonce === attempt.record.nonce) {
    return { self: confirmed(self, attempt, reply.version, heldIds, context) };
  }
  if (reply.outcome === "record" && reply.version === self.version) return { self: pause(self, attempt, context) };
  if (reply.outcome === "record" || reply.outcome === "absent") {
    if (self.condition === "closing") return { self: ended(self, context) };
    return { fencedBecause: reasonOf(reply) };
  }
  return { self: pause(self, attempt, context) };
}

function reasonOf(reply: Reply): string {
  if (reply.outcome === "record" && reply.record?.dead === true) return `was declared dead by ${reply.record.by}`;
  return "was replaced in the store";
}

function renew(self: SelfState, context: StepContext): SelfState {
  const { url, ttlMs, advert } = context.view.settings;
  const beat = self.beat + 1;
  return begin({ ...self, beat }, liveRecord(url, beat, ttlMs, context.nonce(), advert), context);
}

function bury(self: SelfState, context: StepContext): SelfState {
  return begin(self, deadRecord(context.view.me, context.nonce()), context);
}

function begin(self: SelfState, record: LivenessRecord, context: StepContext): SelfState {
  return send(self, { record, sentMs: context.view.nowMs, at: "swapping", id: 0 }, context);
}

/** By the version, repeating the same bytes excludes an earlier copy that may still arrive. */
function send(self: SelfState, attempt: RecordAttempt, context: StepContext): SelfState {
  const id = context.request("self", "", {
    kind: "swap-record",
    instanceId: context.view.me,
    expected: self.version,
    next: attempt.record,
  });
  return { ...self, attempt: { ...attempt, at: "swapping", id } };
}

function settle(self: SelfState, attempt: RecordAttempt, context: StepContext): SelfState {
  const id = context.request("self", "", { kind: "read-record", instanceId: context.view.me });
  return { ...self, attempt: { ...attempt, at: "settling", id } };
}

function pause(self: SelfState, attempt: RecordAttempt, context: StepContext): SelfState {
  const id = context.timer("self", "", context.view.settings.renewRetryMs);
  return { ...self, attempt: { ...attempt, at: "pausing", id } };
}

function confirmed(
  self: SelfState,
  attempt: RecordAttempt,
  version: string,
  heldIds: () => readonly string[],
  context: StepContext,
): SelfState {
  const known: SelfState = { ...self, version, attempt: undefined };
  if (attempt.record.dead === true) return ended(known, context);
  if (self.condition === "closing") return bury(known, context);
  const { renewMs, freezeMs } = context.view.settings;
  const { nowMs } = context.view;
  const { sentMs } = attempt;
  if (self.condition === "registering") context.tell({ kind: "registered", instanceId: context.view.me });
  const still = nowMs - sentMs >= freezeMs;
  if (self.frozen && !still) context.tell({ kind: "thawed", sandboxIds: heldIds() });
  context.timer("self", "", sentMs + freezeMs - nowMs);
  const renewalTimer = context.timer("self", "", sentMs + renewMs - nowMs);
  return { ...known, condition: "alive", goodSinceMs: sentMs, frozen: self.frozen && still, renewalTimer };
}

function ended(self: SelfState, context: StepContext): SelfState {
  if (self.closeTicket !== undefined) context.tell({ kind: "closed", ticket: self.closeTicket });
  return { ...self, condition: "ended", attempt: undefined };
}
