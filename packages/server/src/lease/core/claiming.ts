import type { Head } from "@sandboxer/protocol";
import type { Reply, VersionedHead } from "./messages.ts";
import { done, fail, inPhase, type Operation, type SandboxState } from "./sandbox-state.ts";
import { sendSwap } from "./swapping.ts";
import type { Turn } from "./turn.ts";

export const ANOTHER_WAITS = "another server already waits for it";

export function readForClaim(sandbox: SandboxState, operation: Operation, turn: Turn): SandboxState {
  const { sandboxId } = sandbox;
  const id = turn.request("sandbox", sandboxId, { kind: "read-head", sandboxId });
  return inPhase(sandbox, operation, { at: "reading", id });
}

export function onClaimRead(sandbox: SandboxState, operation: Operation, reply: Reply, turn: Turn): SandboxState {
  if (reply.outcome === "head" && "head" in reply.stored) {
    return decideClaim(sandbox, operation, { head: reply.stored.head, version: reply.version }, turn);
  }
  if (reply.outcome === "absent" || reply.outcome === "head") {
    return fail(sandbox, operation, { kind: "not-found" }, turn);
  }
  const error: unknown = reply.outcome === "failed" ? reply.error : new Error(`Unexpected reply: ${reply.outcome}.`);
  const permanent = reply.outcome === "failed" && reply.permanent;
  // Whoever has a request in the head goes on looking; whoever only just came is told.
  if (operation.request !== undefined && !permanent) return waitFor(sandbox, operation, turn);
  return fail(sandbox, operation, { kind: "error", error }, turn);
}

/** What a claim does about the head that it sees: the first time, after each conflict, and at each look while it waits. */
export function decideClaim(
  sandbox: SandboxState,
  operation: Operation,
  base: VersionedHead,
  turn: Turn,
): SandboxState {
  const { head } = base;
  const { me } = turn.view;
  if (operation.ticket === undefined) return letGo(sandbox, operation, base, turn);
  if (head.state === "deleted") {
    if (operation.command.kind === "destroy") return done(sandbox, operation, head, turn);
    return fail(sandbox, operation, { kind: "destroyed" }, turn);
  }
  // The instance itself may be the owner without knowing: then the answer to an earlier claim was lost.
  const isDead = head.owner !== null && turn.view.isDead(head.owner);
  if (head.owner === null || head.owner === me || isDead) {
    const move = turn.view.settings.moves.claim(me, isDead ? (head.owner ?? undefined) : undefined);
    return swapTo(sandbox, operation, "claim", base, move(head, turn.stamp()), turn);
  }
  const id = turn.request("sandbox", sandbox.sandboxId, { kind: "read-record", instanceId: head.owner });
  return inPhase(sandbox, operation, { at: "liveness", id, base });
}

/** The record of the owner. A dead one has been taken note of before this. */
export function onOwnerRecord(
  sandbox: SandboxState,
  operation: Operation,
  base: VersionedHead,
  reply: Reply,
  turn: Turn,
): SandboxState {
  const { owner } = base.head;
  if (owner === null || turn.view.isDead(owner) || operation.ticket === undefined) {
    return decideClaim(sandbox, operation, base, turn);
  }
  if (reply.outcome === "absent") {
    turn.missing.push(owner);
    return waitFor(sandbox, operation, turn);
  }
  if (reply.outcome === "failed" && operation.request === undefined) {
    return fail(sandbox, operation, { kind: "error", error: reply.error }, turn);
  }
  const record = reply.outcome === "record" ? reply.record : undefined;
  const url = record === undefined || record.dead === true ? undefined : (record.url ?? undefined);
  const holder = { head: base.head, url };
  const { command } = operation;
  const handoffTimeoutMs =
    command.kind === "claim" || command.kind === "destroy" ? command.handoffTimeoutMs : undefined;
  if (handoffTimeoutMs === undefined) return fail(sandbox, operation, { kind: "held", holder }, turn);
  const deadlineMs = operation.deadlineMs ?? turn.view.nowMs + handoffTimeoutMs;
  return askOrWait(sandbox, { ...operation, holder, deadlineMs }, base, turn);
}

function askOrWait(sandbox: SandboxState, operation: Operation, base: VersionedHead, turn: Turn): SandboxState {
  const { want } = base.head;
  const holder = operation.holder ?? { head: base.head, url: undefined };
  if (want !== null && want.request !== undefined && want.request === operation.request) {
    if (want.refused === undefined) return waitFor(sandbox, operation, turn);
    return fail(sandbox, operation, { kind: "refused", holder, reason: want.refused }, turn);
  }
  if (isTaken(want, turn)) {
    return fail(sandbox, operation, { kind: "refused", holder, reason: ANOTHER_WAITS }, turn);
  }
  if (turn.view.nowMs >= (operation.deadlineMs ?? 0)) {
    return fail(sandbox, operation, { kind: "timed-out", holder }, turn);
  }
  const request = turn.nonce();
  const move = turn.view.settings.moves.ask(turn.view.me, request);
  return swapTo(sandbox, { ...operation, request }, "ask", base, move(base.head, turn.stamp()), turn);
}

/** Whether somebody else's request is in the head that is open, and not of the dead. */
function isTaken(want: Head["want"], turn: Turn): boolean {
  if (want === null || want.refused !== undefined) return false;
  return want.instance_id !== turn.view.me && !turn.view.isDead(want.instance_id);
}

/** The request is in the head. */
export function onAsked(sandbox: SandboxState, operation: Operation, turn: Turn): SandboxState {
  const { ticket, holder } = operation;
  const owner = holder?.head.owner ?? null;
  if (ticket === undefined || holder === undefined || owner === null) return readForClaim(sandbox, operation, turn);
  turn.tell({ kind: "waiting", ticket, sandboxId: sandbox.sandboxId, owner, url: holder.url });
  return waitFor(sandbox, { ...operation, toldOf: owner }, turn);
}

export function onWaited(sandbox: SandboxState, operation: Operation, turn: Turn): SandboxState {
  const { ticket, deadlineMs, holder } = operation;
  if (deadlineMs === undefined || turn.view.nowMs < deadlineMs || holder === undefined) {
    return readForClaim(sandbox, operation, turn);
  }
  // The caller has waited long enough; taking the request back is not its business.
  if (ticket !== undefined) turn.tell({ kind: "failed", ticket, failure: { kind: "timed-out", holder } });
  return readForClaim(sandbox, { ...operation, ticket: undefined }, turn);
}

/** Nobody waits any more: an own request is taken back. */
function letGo(sandbox: SandboxState, operation: Operation, base: VersionedHead, turn: Turn): SandboxState {
  const { want } = base.head;
  const { request } = operation;
  if (request === undefined || want?.request !== request || want.refused !== undefined) {
    return done(sandbox, operation, base.head, turn);
  }
  const move = turn.view.settings.moves.withdraw(request);
  return swapTo(sandbox, operation, "withdraw", base, move(base.head, turn.stamp()), turn);
}

function swapTo(
  sandbox: SandboxState,
  operation: Operation,
  intent: "claim" | "ask" | "withdraw",
  { head, version }: VersionedHead,
  result: { readonly head: Head } | { readonly refusal: string },
  turn: Turn,
): SandboxState {
  if ("refusal" in result) return readForClaim(sandbox, operation, turn);
  return sendSwap(sandbox, operation, { intent, expected: version, from: head, next: result.head }, turn);
}

function waitFor(sandbox: SandboxState, operation: Operation, turn: Turn): SandboxState {
  const id = turn.timer("sandbox", sandbox.sandboxId, turn.view.settings.waitPollMs);
  return inPhase(sandbox, operation, { at: "waiting", id });
}
