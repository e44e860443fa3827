import type { Head } from "@sandboxer/protocol";
import type { Reply, VersionedHead } from "./messages.ts";
import {
  inPhase,
  type Operation,
  type PendingSwap,
  type Phase,
  type SandboxState,
  type SwapPhase,
} from "./sandbox-state.ts";
import type { Turn } from "./turn.ts";

/** What became of a swap, or that it is not known yet. */
export type SwapResult =
  | { readonly kind: "pending"; readonly sandbox: SandboxState }
  /** `present` is what was written, or something later that came from it. */
  | { readonly kind: "applied"; readonly present: VersionedHead }
  /** It was not and never will be applied; `found` is what is there instead. */
  | { readonly kind: "conflict"; readonly found: VersionedHead | undefined }
  /** It was not and never will be applied. */
  | { readonly kind: "failed"; readonly error: unknown };

export function sendSwap(
  sandbox: SandboxState,
  operation: Operation,
  swap: Pick<PendingSwap, "intent" | "expected" | "from" | "next">,
  turn: Turn,
): SandboxState {
  return send(sandbox, operation, { ...swap, uncertain: false, retryMs: turn.view.settings.firstRetryMs }, turn);
}

/** A reply to a swap, or to the look that tells what became of it. */
export function onSwapReply(
  sandbox: SandboxState,
  operation: Operation,
  phase: SwapPhase,
  reply: Reply,
  turn: Turn,
): SwapResult {
  const { swap } = phase;
  if (phase.at === "settling") return settle(sandbox, operation, swap, reply, turn);
  if (reply.outcome === "written") {
    return { kind: "applied", present: { head: swap.next, version: reply.version } };
  }
  // After an ambiguous attempt also a clear no to the next one leaves the first one open.
  if (reply.outcome === "failed" && !swap.uncertain) return { kind: "failed", error: reply.error };
  const uncertain = swap.uncertain || reply.outcome !== "conflict";
  return { kind: "pending", sandbox: look(sandbox, operation, { ...swap, uncertain }, turn) };
}

/** The pause is over, and the swap is sent again as it is. Had it been applied after all, this one would be a conflict. */
export function onSwapTimer(sandbox: SandboxState, operation: Operation, phase: SwapPhase, turn: Turn): SandboxState {
  return send(sandbox, operation, phase.swap, turn);
}

/**
 * A lost write may still arrive. As long as the version that it expects is the present one, the same bytes are sent again:
 * the two exclude each other. Once another version is there without its nonce, it can never be applied.
 */
function settle(sandbox: SandboxState, operation: Operation, swap: PendingSwap, reply: Reply, turn: Turn): SwapResult {
  // A head that cannot be read does not tell whether an ambiguous attempt was applied: that stays open until one can be.
  if (reply.outcome === "failed" && reply.permanent && !swap.uncertain) return { kind: "failed", error: reply.error };
  if (reply.outcome !== "head" && reply.outcome !== "absent") {
    return { kind: "pending", sandbox: rest(sandbox, operation, swap, turn) };
  }
  const version = reply.outcome === "head" ? reply.version : undefined;
  if (version === swap.expected) return { kind: "pending", sandbox: rest(sandbox, operation, swap, turn) };
  if (reply.outcome === "absent" || !("head" in reply.stored)) return { kind: "conflict", found: undefined };
  const found: VersionedHead = { head: reply.stored.head, version: reply.version };
  return cameFrom(found.head, swap) ? { kind: "applied", present: found } : { kind: "conflict", found };
}

/**
 * The history is short, so that many requests on top may have pushed the nonce out. Who claimed an epoch, and where the
 * pointer of an epoch went, is told by the head as well: only this instance could write either.
 */
function cameFrom(present: Head, { intent, from, next }: PendingSwap): boolean {
  if (present.nonce === next.nonce || present.history.includes(next.nonce)) return true;
  if (next.owner === null || present.owner !== next.owner || present.epoch !== next.epoch) return false;
  if (intent === "claim" || intent === "create") return true;
  const moved = next.checkpoint?.name;
  return intent === "own" && moved !== from?.checkpoint?.name && present.checkpoint?.name === moved;
}

function send(sandbox: SandboxState, operation: Operation, swap: PendingSwap, turn: Turn): SandboxState {
  const { sandboxId } = sandbox;
  const { expected, next } = swap;
  const id = turn.request("sandbox", sandboxId, { kind: "swap-head", sandboxId, expected, next });
  return at(sandbox, operation, "swapping", id, swap);
}

function look(sandbox: SandboxState, operation: Operation, swap: PendingSwap, turn: Turn): SandboxState {
  const { sandboxId } = sandbox;
  const id = turn.request("sandbox", sandboxId, { kind: "read-head", sandboxId });
  return at(sandbox, operation, "settling", id, swap);
}

function rest(sandbox: SandboxState, operation: Operation, swap: PendingSwap, turn: Turn): SandboxState {
  const id = turn.timer("sandbox", sandbox.sandboxId, swap.retryMs);
  const retryMs = Math.min(swap.retryMs * 2, turn.view.settings.longestRetryMs);
  return at(sandbox, operation, "resting", id, { ...swap, retryMs });
}

function at(
  sandbox: SandboxState,
  operation: Operation,
  where: SwapPhase["at"],
  id: number,
  swap: PendingSwap,
): SandboxState {
  const phase: Phase = { at: where, id, swap };
  return inPhase(sandbox, operation, phase);
}
