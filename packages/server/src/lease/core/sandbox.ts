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
import type { Turn } from "./turn.ts";

export function onCommand(sandbox: SandboxState, ticket: number, command: Command, turn: Turn): SandboxState {
  return goOn({ ...sandbox, queue: [...sandbox.queue, { ticket, command }] }, turn);
}

/** An order that has not begun goes; an operation that has is brought to its end, without an answer. */
export function onAbandon(sandbox: SandboxState, ticket: number, turn: Turn): SandboxState {
  const queue = sandbox.queue.filter((order) => order.ticket !== ticket);
  const { operation } = sandbox;
  if (operation?.ticket !== ticket) return goOn({ ...sandbox, queue }, turn);
  const abandoned: Operation = { ...operation, ticket: undefined };
  const next: SandboxState = { ...sandbox, queue, operation: abandoned };
  return goOn(operation.phase.at === "waiting" ? readForClaim(next, abandoned, turn) : next, turn);
}

export function onSandboxTimer(sandbox: SandboxState, id: number, turn: Turn): SandboxState {
  const { operation } = sandbox;
  if (operation === undefined) return sandbox;
  const { phase } = operation;
  if (phase.at === "waiting" && phase.id === id) return goOn(onWaited(sandbox, operation, turn), turn);
  if (phase.at === "resting" && phase.id === id) return onSwapTimer(sandbox, operation, phase, turn);
  return sandbox;
}

/** An instance died: whoever waits for it need not wait for the next look. */
export function onDeath(sandbox: SandboxState, turn: Turn): SandboxState {
  const { operation } = sandbox;
  return operation?.phase.at === "waiting" ? readForClaim(sandbox, operation, turn) : sandbox;
}

/** Somebody rings for a sandbox: the owner is asked for it, or who waits for it is told that it is free. */
export function onRung(sandbox: SandboxState, turn: Turn): SandboxState {
  const { operation } = sandbox;
  return operation?.phase.at === "waiting" ? readForClaim(sandbox, operation, turn) : look(sandbox, turn);
}

export function onSandboxReply(sandbox: SandboxState, id: number, reply: Reply, turn: Turn): SandboxState {
  const { operation } = sandbox;
  if (operation === undefined) return sandbox.look === id ? goOn(onLooked(sandbox, reply, turn), turn) : sandbox;
  const { phase } = operation;
  if (phase.at === "beginning" || phase.id !== id) return sandbox;
  switch (phase.at) {
    case "reading":
      return goOn(onRead(sandbox, operation, reply, turn), turn);
    case "liveness":
      return goOn(onOwnerRecord(sandbox, operation, phase.base, reply, turn), turn);
    case "swapping":
    case "settling": {
      const result = onSwapReply(sandbox, operation, phase, reply, turn);
      return goOn(onSwapResult(sandbox, operation, phase.swap, result, turn), turn);
    }
    case "waiting":
    case "resting":
      return sandbox;
  }
}

/** Begins what is next, when nothing is under way. */
export function goOn(sandbox: SandboxState, turn: Turn): SandboxState {
  let state = sandbox;
  while (state.operation === undefined) {
    state = announce(state, turn);
    const [order, ...queue] = state.queue;
    if (order === undefined || !turn.view.registered) return state;
    state = begin({ ...state, queue, look: undefined }, newOperation(order), turn);
  }
  return state;
}

function begin(sandbox: SandboxState, operation: Operation, turn: Turn): SandboxState {
  const { held } = sandbox;
  const { kind } = operation.command;
  if (kind === "claim" && held !== undefined) return done(sandbox, operation, held.head, turn);
  if (kind === "create" && operation.command.isFresh === true) {
    return create(sandbox, operation, operation.command.sandbox, undefined, turn);
  }
  if (kind === "create" || kind === "claim" || (kind === "destroy" && held === undefined)) {
    return readForClaim(sandbox, operation, turn);
  }
  return moveHeld(sandbox, operation, turn);
}

function onRead(sandbox: SandboxState, operation: Operation, reply: Reply, turn: Turn): SandboxState {
  const { command } = operation;
  if (command.kind !== "create") return onClaimRead(sandbox, operation, reply, turn);
  if (reply.outcome === "failed") return fail(sandbox, operation, { kind: "error", error: reply.error }, turn);
  const imported =
    reply.outcome === "head" && "imported" in reply.stored
      ? { record: reply.stored.imported, version: reply.version }
      : undefined;
  if (reply.outcome !== "absent" && imported === undefined) {
    return fail(sandbox, operation, { kind: "already-there" }, turn);
  }
  return create(sandbox, operation, command.sandbox, imported, turn);
}

/** The first head of a sandbox, on top of the record that its folder came with, if it did. */
function create(
  sandbox: SandboxState,
  operation: Operation,
  newcomer: NewSandbox,
  imported: { readonly record: ImportedRecord; readonly version: string } | undefined,
  turn: Turn,
): SandboxState {
  const fresh = turn.view.settings.moves.newHead(turn.view.me, newcomer, turn.stamp());
  const next = imported === undefined ? fresh : withImported(fresh, imported.record);
  const expected = imported?.version;
  return sendSwap(sandbox, operation, { intent: "create", expected, from: undefined, next }, turn);
}

function onSwapResult(
  sandbox: SandboxState,
  operation: Operation,
  swap: PendingSwap,
  result: SwapResult,
  turn: Turn,
): SandboxState {
  switch (result.kind) {
    case "pending":
      return result.sandbox;
    case "failed":
      return fail(sandbox, operation, { kind: "error", error: result.error }, turn);
    case "applied":
      return onApplied(sandbox, operation, swap, result.present, turn);
    case "conflict":
      if (swap.intent === "own") return onMoveConflict(sandbox, operation, result.found, turn);
      if (swap.intent === "create") return fail(sandbox, operation, { kind: "already-there" }, turn);
      if (result.found === undefined) return fail(sandbox, operation, { kind: "not-found" }, turn);
      return decideClaim(sandbox, operation, result.found, turn);
  }
}

function onApplied(
  sandbox: SandboxState,
  operation: Operation,
  swap: PendingSwap,
  present: VersionedHead,
  turn: Turn,
): SandboxState {
  switch (swap.intent) {
    case "own":
      return onMoved(sandbox, operation, swap, present, turn);
    case "ask":
      return onAsked(sandbox, operation, turn);
    case "withdraw":
      return done(sandbox, operation, present.head, turn);
    case "create":
    case "claim":
      return onTaken(sandbox, operation, swap, present, turn);
  }
}

function onTaken(
  sandbox: SandboxState,
  operation: Operation,
  swap: PendingSwap,
  present: VersionedHead,
  turn: Turn,
): SandboxState {
  if (!isOurs(present, turn.view.me, swap.next.epoch)) {
    return fail(sandbox, operation, { kind: "lost", head: present.head }, turn);
  }
  const held: SandboxState = { ...sandbox, held: present, announced: undefined };
  const { ticket, command } = operation;
  if (command.kind === "destroy" || ticket === undefined) {
    return moveHeld(held, operation, turn);
  }
  return done(held, operation, present.head, turn);
}
