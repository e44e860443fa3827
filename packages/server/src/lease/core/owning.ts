import type { Head } from "@sandboxer/protocol";
import type { HeadMoves, Move, Owner } from "../head.ts";
import type { Command, VersionedHead } from "./messages.ts";
import { done, fail, isOurs, lose, type Operation, type PendingSwap, type SandboxState } from "./sandbox-state.ts";
import { sendSwap } from "./swapping.ts";
import type { Turn } from "./turn.ts";

/** A move of the owner. It goes on top of the head as this instance knows it. */
export function moveHeld(sandbox: SandboxState, operation: Operation, turn: Turn): SandboxState {
  const { held } = sandbox;
  const { command } = operation;
  if (held === undefined || ("epoch" in command && command.epoch !== held.head.epoch)) {
    return fail(sandbox, operation, { kind: "lost", head: held?.head }, turn);
  }
  if (command.kind === "refuse" && !isOpen(held.head.want)) return done(sandbox, operation, held.head, turn);
  const owner: Owner = { instanceId: turn.view.me, epoch: held.head.epoch };
  const result = moveOf(command, owner, turn.view.settings.moves)(held.head, turn.stamp());
  if ("refusal" in result) return lost(sandbox, operation, held.head, turn);
  const swap = { intent: "own", expected: held.version, from: held.head, next: result.head } as const;
  return sendSwap(sandbox, operation, swap, turn);
}

function moveOf(command: Command, owner: Owner, moves: HeadMoves): Move {
  switch (command.kind) {
    case "publish":
      return moves.publishCheckpoint(owner, command.checkpoint, command.status);
    case "update":
      return moves.updateDetails(owner, command.details);
    case "rehouse":
      return moves.rehouse(owner, command.home);
    case "refuse":
      return moves.refuse(owner, command.reason);
    case "destroy":
      return moves.destroy(owner);
    case "release":
      return moves.release(owner, command.checkpoint, command.stoppedAt);
    // A claim or a creation that nobody waits for any more is given back.
    case "create":
    case "claim":
      return moves.release(owner);
  }
}

/** The move is in the store. Whether the sandbox is still held depends on what was meant and on what came after it. */
export function onMoved(
  sandbox: SandboxState,
  operation: Operation,
  swap: PendingSwap,
  present: VersionedHead,
  turn: Turn,
): SandboxState {
  if (swap.next.owner === null) {
    return done({ ...sandbox, held: undefined, announced: undefined }, operation, swap.next, turn);
  }
  if (isOurs(present, turn.view.me, swap.next.epoch)) {
    return done({ ...sandbox, held: present }, operation, present.head, turn);
  }
  // It came to be, and everything after it rests on it; only the sandbox is somebody else's by now.
  return lose(done(sandbox, operation, swap.next, turn), present.head, turn);
}

/** Others may ask for the sandbox and change nothing else; then the same move goes on top of that. */
export function onMoveConflict(
  sandbox: SandboxState,
  operation: Operation,
  found: VersionedHead | undefined,
  turn: Turn,
): SandboxState {
  const { held } = sandbox;
  if (found === undefined || held === undefined || !differsInRequestOnly(found.head, held.head)) {
    return lost(sandbox, operation, found?.head, turn);
  }
  return moveHeld({ ...sandbox, held: found }, operation, turn);
}

function lost(sandbox: SandboxState, operation: Operation, head: Head | undefined, turn: Turn): SandboxState {
  return lose(fail(sandbox, operation, { kind: "lost", head }, turn), head, turn);
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
