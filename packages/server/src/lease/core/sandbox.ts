import type { NewSandbox } from "../head.ts";
import { type ImportedRecord, withImported } from "../head-codec.ts";
import { decideClaim, onAsked, onClaimRead, onOwnerRecord, onWaited, readForClaim } from "./claiming.ts";
import { announce, look, onLooked } from "./looking.ts";
import type { Command, Reply, VersionedHead } from "./messages.ts";
import { moveHeld, onMoveConflict, onMoved } from "./owning.ts";
import {
  done,
  fail,
  isOurs,
  newOperation,
  type Operation,
  type PendingSwap,
  type SandboxState,
} from "./sandbox-state.ts";
import { onSwapReply, onSwapTimer, sendSwap, type SwapResult } from "./swapping.ts";
import type { StepContext } from "./step-context.ts";

export function onCommand(sandbox: SandboxState, ticket: number, command: Command, context: StepContext): SandboxState {
  return goOn({ ...sandbox, queue: [...sandbox.queue, { ticket, command }] }, context);
}

/** A command that has not begun is dropped; an operation in progress is completed without an answer. */
export function onAbandon(sandbox: SandboxState, ticket: number, context: StepContext): SandboxState {
  const queue = sandbox.queue.filter((order) => order.ticket !== ticket);
  const { operation } = sandbox;
  if (operation?.ticket !== ticket) return goOn({ ...sandbox, queue }, context);
  const abandoned: Operation = { ...operation, ticket: undefined };
  const next: SandboxState = { ...sandbox, queue, operation: abandoned };
  return goOn(operation.phase.at === "waiting" ? readForClaim(next, abandoned, context) : next, context);
}

export function onSandboxTimer(sandbox: SandboxState, id: number, context: StepContext): SandboxState {
  const { operation } = sandbox;
  if (operation === undefined) return sandbox;
  const { phase } = operation;
  if (phase.at === "waiting" && phase.id === id) return goOn(onWaited(sandbox, operation, context), context);
  if (phase.at === "resting" && phase.id === id) return onSwapTimer(sandbox, operation, phase, context);
  return sandbox;
}

/** An instance died: a claim that waits for it need not wait for the next look. */
export function onDeath(sandbox: SandboxState, context: StepContext): SandboxState {
  const { operation } = sandbox;
  return operation?.phase.at === "waiting" ? readForClaim(sandbox, operation, context) : sandbox;
}

/** Another instance rings for a sandbox: the owner checks for a request, or a waiting claim learns that it is free. */
export function onRung(sandbox: SandboxState, context: StepContext): SandboxState {
  const { operation } = sandbox;
  return operation?.phase.at === "waiting" ? readForClaim(sandbox, operation, context) : look(sandbox, context);
}

export function onSandboxReply(sandbox: SandboxState, id: number, reply: Reply, context: StepContext): SandboxState {
  const { operation } = sandbox;
  if (operation === undefined) return sandbox.look === id ? goOn(onLooked(sandbox, reply, context), context) : sandbox;
  const { phase } = operation;
  if (phase.at === "beginning" || phase.id !== id) return sandbox;
  switch (phase.at) {
    case "reading":
      return goOn(onRead(sandbox, operation, reply, context), context);
    case "liveness":
      return goOn(onOwnerRecord(sandbox, operation, phase.base, reply, context), context);
    case "swapping":
    case "settling": {
      const result = onSwapReply(sandbox, operation, phase, reply, context);
      return goOn(onSwapResult(sandbox, operation, phase.swap, result, context), context);
    }
    case "waiting":
    case "resting":
      return sandbox;
  }
}

/** Begins the next command if nothing is in progress. */
export function goOn(sandbox: SandboxState, context: StepContext): SandboxState {
  let state = sandbox;
  while (state.operation === undefined) {
    state = announce(state, context);
    const [order, ...queue] = state.queue;
    if (order === undefined || !context.view.registered) return state;
    state = begin({ ...state, queue, look: undefined }, newOperation(order), context);
  }
  return state;
}

function begin(sandbox: SandboxState, operation: Operation, context: StepContext): SandboxState {
  const { held } = sandbox;
  const { kind } = operation.command;
  if (kind === "claim" && held !== undefined) return done(sandbox, operation, held.head, context);
  if (kind === "create" && operation.command.isFresh === true) {
    return create(sandbox, operation, operation.command.sandbox, undefined, context);
  }
  if (kind === "create" || kind === "claim" || (kind === "destroy" && held === undefined)) {
    return readForClaim(sandbox, operation, context);
  }
  return moveHeld(sandbox, operation, context);
}

function onRead(sandbox: SandboxState, operation: Operation, reply: Reply, context: StepContext): SandboxState {
  const { command } = operation;
  if (command.kind !== "create") return onClaimRead(sandbox, operation, reply, context);
  if (reply.outcome === "failed") return fail(sandbox, operation, { kind: "error", error: reply.error }, context);
  const imported =
    reply.outcome === "head" && "imported" in reply.stored
      ? { record: reply.stored.imported, version: reply.version }
      : undefined;
  if (reply.outcome !== "absent" && imported === undefined) {
    return fail(sandbox, operation, { kind: "already-there" }, context);
  }
  return create(sandbox, operation, command.sandbox, imported, context);
}

/** The first head of a sandbox, on top of the record that its folder came with, if any. */
function create(
  sandbox: SandboxState,
  operation: Operation,
  newcomer: NewSandbox,
  imported: { readonly record: ImportedRecord; readonly version: string } | undefined,
  context: StepContext,
): SandboxState {
  const fresh = context.view.settings.moves.newHead(context.view.me, newcomer, context.stamp());
  const next = imported === undefined ? fresh : withImported(fresh, imported.record);
  const expected = imported?.version;
  return sendSwap(sandbox, operation, { intent: "create", expected, from: undefined, next }, context);
}

function onSwapResult(
  sandbox: SandboxState,
  operation: Operation,
  swap: PendingSwap,
  result: SwapResult,
  context: StepContext,
): SandboxState {
  switch (result.kind) {
    case "pending":
      return result.sandbox;
    case "failed":
      return fail(sandbox, operation, { kind: "error", error: result.error }, context);
    case "applied":
      return onApplied(sandbox, operation, swap, result.present, context);
    case "conflict":
      if (swap.intent === "own") return onMoveConflict(sandbox, operation, result.found, context);
      if (swap.intent === "create") return fail(sandbox, operation, { kind: "already-there" }, context);
      if (result.found === undefined) return fail(sandbox, operation, { kind: "not-found" }, context);
      return decideClaim(sandbox, operation, result.found, context);
  }
}

function onApplied(
  sandbox: SandboxState,
  operation: Operation,
  swap: PendingSwap,
  present: VersionedHead,
  context: StepContext,
): SandboxState {
  switch (swap.intent) {
    case "own":
      return onMoved(sandbox, operation, swap, present, context);
    case "ask":
      return onAsked(sandbox, operation, context);
    case "withdraw":
      return done(sandbox, operation, present.head, context);
    case "create":
    case "claim":
      return onTaken(sandbox, operation, swap, present, context);
  }
}

function onTaken(
  sandbox: SandboxState,
  operation: Operation,
  swap: PendingSwap,
  present: VersionedHead,
  context: StepContext,
): SandboxState {
  if (!isOurs(present, context.view.me, swap.next.epoch)) {
    return fail(sandbox, operation, { kind: "lost", head: present.head }, context);
  }
  const held: SandboxState = { ...sandbox, held: present, announced: undefined };
  const { ticket, command } = operation;
  if (command.kind === "destroy" || ticket === undefined) {
    return moveHeld(held, operation, context);
  }
  return done(held, operation, present.head, context);
}
