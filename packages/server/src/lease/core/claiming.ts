import type { Head } from "@sandboxer/protocol";
import type { Reply, VersionedHead } from "./messages.ts";
import { done, fail, inPhase, type Operation, type SandboxState } from "./sandbox-state.ts";
import { sendSwap } from "./swapping.ts";
import type { StepContext } from "./step-context.ts";

export const ANOTHER_WAITS = "another server already waits for it";

export function readForClaim(sandbox: SandboxState, operation: Operation, context: StepContext): SandboxState {
  const { sandboxId } = sandbox;
  const id = context.request("sandbox", sandboxId, { kind: "read-head", sandboxId });
  return inPhase(sandbox, operation, { at: "reading", id });
}

export function onClaimRead(
  sandbox: SandboxState,
  operation: Operation,
  reply: Reply,
  context: StepContext,
): SandboxState {
  if (reply.outcome === "head" && "head" in reply.stored) {
    return decideClaim(sandbox, operation, { head: reply.stored.head, version: reply.version }, context);
  }
  if (reply.outcome === "absent" || reply.outcome === "head") {
    return fail(sandbox, operation, { kind: "not-found" }, context);
  }
  const error: unknown = reply.outcome === "failed" ? reply.error : new Error(`Unexpected reply: ${reply.outcome}.`);
  const permanent = reply.outcome === "failed" && reply.permanent;
  // A claim with a request in the head keeps looking; a new claim fails.
  if (operation.request !== undefined && !permanent) return waitFor(sandbox, operation, context);
  return fail(sandbox, operation, { kind: "error", error }, context);
}

/** The reaction of a claim to the head that it sees: at first, after each conflict, and at each look while it waits. */
export function decideClaim(
  sandbox: SandboxState,
  operation: Operation,
  base: VersionedHead,
  context: StepContext,
): SandboxState {
  const { head } = base;
  const { me } = context.view;
  if (operation.ticket === undefined) return letGo(sandbox, operation, base, context);
  if (head.state === "deleted") {
    if (operation.command.kind === "destroy") return done(sandbox, operation, head, context);
    return fail(sandbox, operation, { kind: "destroyed" }, context);
  }
  // This instance may be the owner without knowing: then the answer to an earlier claim was lost.
  const isDead = head.owner !== null && context.view.isDead(head.owner);
  if (head.owner === null || head.owner === me || isDead) {
    const move = context.view.settings.moves.claim(me, isDead ? (head.owner ?? undefined) : undefined);
    return swapTo(sandbox, operation, "claim", base, move(head, context.stamp()), context);
  }
  const id = context.request("sandbox", sandbox.sandboxId, { kind: "read-record", instanceId: head.owner });
  return inPhase(sandbox, operation, { at: "liveness", id, base });
}

/** The record of the owner. A dead owner was handled before this. */
export function onOwnerRecord(
  sandbox: SandboxState,
  operation: Operation,
  base: VersionedHead,
  reply: Reply,
  context: StepContext,
): SandboxState {
  const { owner } = base.head;
  if (owner === null || context.view.isDead(owner) || operation.ticket === undefined) {
    return decideClaim(sandbox, operation, base, context);
  }
  if (reply.outcome === "absent") {
    context.missing.push(owner);
    return waitFor(sandbox, operation, context);
  }
  if (reply.outcome === "failed" && operation.request === undefined) {
    return fail(sandbox, operation, { kind: "error", error: reply.error }, context);
  }
  const record = reply.outcome === "record" ? reply.record : undefined;
  const url = record === undefined || record.dead === true ? undefined : (record.url ?? undefined);
  const holder = { head: base.head, url };
  const { command } = operation;
  const handoffTimeoutMs =
    command.kind === "claim" || command.kind === "destroy" ? command.handoffTimeoutMs : undefined;
  if (handoffTimeoutMs === undefined) return fail(sandbox, operation, { kind: "held", holder }, context);
  const deadlineMs = operation.deadlineMs ?? context.view.nowMs + handoffTimeoutMs;
  return askOrWait(sandbox, { ...operation, holder, deadlineMs }, base, context);
}

function askOrWait(
  sandbox: SandboxState,
  operation: Operation,
  base: VersionedHead,
  context: StepContext,
): SandboxState {
  const { want } = base.head;
  const holder = operation.holder ?? { head: base.head, url: undefined };
  if (want !== null && want.request !== undefined && want.request === operation.request) {
    if (want.refused === undefined) return waitFor(sandbox, operation, context);
    return fail(sandbox, operation, { kind: "refused", holder, reason: want.refused }, context);
  }
  if (isTaken(want, context)) {
    return fail(sandbox, operation, { kind: "refused", holder, reason: ANOTHER_WAITS }, context);
  }
  if (context.view.nowMs >= (operation.deadlineMs ?? 0)) {
    return fail(sandbox, operation, { kind: "timed-out", holder }, context);
  }
  const request = context.nonce();
  const move = context.view.settings.moves.ask(context.view.me, request);
  return swapTo(sandbox, { ...operation, request }, "ask", base, move(base.head, context.stamp()), context);
}

/** Whether the head has an open request of another live instance. */
function isTaken(want: Head["want"], context: StepContext): boolean {
  if (want === null || want.refused !== undefined) return false;
  return want.instance_id !== context.view.me && !context.view.isDead(want.instance_id);
}

/** The request is in the head. */
export function onAsked(sandbox: SandboxState, operation: Operation, context: StepContext): SandboxState {
  const { ticket, holder } = operation;
  const owner = holder?.head.owner ?? null;
  if (ticket === undefined || holder === undefined || owner === null) return readForClaim(sandbox, operation, context);
  context.tell({ kind: "waiting", ticket, sandboxId: sandbox.sandboxId, owner, url: holder.url });
  return waitFor(sandbox, { ...operation, toldOf: owner }, context);
}

export function onWaited(sandbox: SandboxState, operation: Operation, context: StepContext): SandboxState {
  const { ticket, deadlineMs, holder } = operation;
  if (deadlineMs === undefined || context.view.nowMs < deadlineMs || holder === undefined) {
    return readForClaim(sandbox, operation, context);
  }
  // The caller has waited long enough; taking back the request is not its concern.
  if (ticket !== undefined) context.tell({ kind: "failed", ticket, failure: { kind: "timed-out", holder } });
  return readForClaim(sandbox, { ...operation, ticket: undefined }, context);
}

/** Nobody waits any more: takes back our own request. */
function letGo(sandbox: SandboxState, operation: Operation, base: VersionedHead, context: StepContext): SandboxState {
  const { want } = base.head;
  const { request } = operation;
  if (request === undefined || want?.request !== request || want.refused !== undefined) {
    return done(sandbox, operation, base.head, context);
  }
  const move = context.view.settings.moves.withdraw(request);
  return swapTo(sandbox, operation, "withdraw", base, move(base.head, context.stamp()), context);
}

function swapTo(
  sandbox: SandboxState,
  operation: Operation,
  intent: "claim" | "ask" | "withdraw",
  { head, version }: VersionedHead,
  result: { readonly head: Head } | { readonly refusal: string },
  context: StepContext,
): SandboxState {
  if ("refusal" in result) return readForClaim(sandbox, operation, context);
  return sendSwap(sandbox, operation, { intent, expected: version, from: head, next: result.head }, context);
}

function waitFor(sandbox: SandboxState, operation: Operation, context: StepContext): SandboxState {
  const id = context.timer("sandbox", sandbox.sandboxId, context.view.settings.waitPollMs);
  return inPhase(sandbox, operation, { at: "waiting", id });
}
