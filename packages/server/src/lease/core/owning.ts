import type { Head } from "@sandboxer/protocol";
import type { HeadMoves, Move, Owner } from "../head.ts";
import type { Command, VersionedHead } from "./messages.ts";
import { done, fail, isOurs, lose, type Operation, type PendingSwap, type SandboxState } from "./sandbox-state.ts";
import { sendSwap } from "./swapping.ts";
import type { StepContext } from "./step-context.ts";

/** A move of the owner, applied to the head as this instance knows it. */
export function moveHeld(sandbox: SandboxState, operation: Operation, context: StepContext): SandboxState {
  const { held } = sandbox;
  const { command } = operation;
  if (held === undefined || ("epoch" in command && command.epoch !== held.head.epoch)) {
    return fail(sandbox, operation, { kind: "lost", head: held?.head }, context);
  }
  if (command.kind === "refuse" && !isOpen(held.head.want)) return done(sandbox, operation, held.head, context);
  const owner: Owner = { instanceId: context.view.me, epoch: held.head.epoch };
  const result = moveOf(command, owner, context.view.settings.moves)(held.head, context.stamp());
  if ("refusal" in result) return lost(sandbox, operation, held.head, context);
  const swap = { intent: "own", expected: held.version, from: held.head, next: result.head } as const;
  return sendSwap(sandbox, operation, swap, context);
}

function moveOf(command: Command, owner: Owner, moves: HeadMoves): Move {
  switch (command.kind) {
    case "publish":
      return moves.publishCheckpoint(owner, command.checkpoint, command.status);
    case "update":
      return moves.updateDetails(owner, command.details);
    case "rehouse":
      return moves.rehouse(owner, command.home);
    case "replace":
      return moves.replaceState(owner, command.replacement);
    case "refuse":
      return moves.refuse(owner, command.reason);
    case "destroy":
      return moves.destroy(owner);
    case "release":
      return moves.release(owner, command.checkpoint, command.stoppedAt);
    // A claim or creation that nobody waits for any more is released.
    case "create":
    case "claim":
      return moves.release(owner);
  }
}

/** The move is in the store. Whether the sandbox is still held depends on the move and on what came after it. */
export function onMoved(
  sandbox: SandboxState,
  operation: Operation,
  swap: PendingSwap,
  present: VersionedHead,
  context: StepContext,
): SandboxState {
  if (swap.next.owner === null) {
    return done({ ...sandbox, held: undefined, announced: undefined }, operation, swap.next, context);
  }
  if (isOurs(present, context.view.me, swap.next.epoch)) {
    return done({ ...sandbox, held: present }, operation, present.head, context);
  }
  // The move was applied, and later state builds on it; only the sandbox belongs to another instance by now.
  return lose(done(sandbox, operation, swap.next, context), present.head, context);
}

/** Others may only add a request to the head; then the same move is applied on top of that. */
export function onMoveConflict(
  sandbox: SandboxState,
  operation: Operation,
  found: VersionedHead | undefined,
  context: StepContext,
): SandboxState {
  const { held } = sandbox;
  if (found === undefined || held === undefined || !differsInRequestOnly(found.head, held.head)) {
    return lost(sandbox, operation, found?.head, context);
  }
  return moveHeld({ ...sandbox, held: found }, operation, context);
}

function lost(sandbox: SandboxState, operation: Operation, head: Head | undefined, context: StepContext): SandboxState {
  return lose(fail(sandbox, operation, { kind: "lost", head }, context), head, context);
}

export function isOpen(want: Head["want"]): want is NonNullable<Head["want"]> {
  return want !== null && want.refused === undefined;
}

function differsInRequestOnly(present: Head, base: Head): boolean {
  return (
    present.epoch === base.epoch &&
    present.owner === base.owner &&
    present.state === base.state &&
    present.checkpoint?.name === base.checkpoint?.name
  );
}
