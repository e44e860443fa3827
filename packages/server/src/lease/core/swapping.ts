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
import type { StepContext } from "./step-context.ts";

/** The outcome of a swap, or that it is unknown yet. */
export type SwapResult =
  | { readonly kind: "pending"; readonly sandbox: SandboxState }
  /** `present` is what was written, or something later that came from it. */
  | { readonly kind: "applied"; readonly present: VersionedHead }
  /** It was not and never will be applied; `found` is the content instead. */
  | { readonly kind: "conflict"; readonly found: VersionedHead | undefined }
  /** It was not and never will be applied. */
  | { readonly kind: "failed"; readonly error: unknown };

export function sendSwap(
  sandbox: SandboxState,
  operation: Operation,
  swap: Pick<PendingSwap, "intent" | "expected" | "from" | "next">,
  context: StepContext,
): SandboxState {
  return send(sandbox, operation, { ...swap, uncertain: false, retryMs: context.view.settings.firstRetryMs }, context);
}

/** A reply to a swap, or to the read that determines its outcome. */
export function onSwapReply(
  sandbox: SandboxState,
  operation: Operation,
  phase: SwapPhase,
  reply: Reply,
  context: StepContext,
): SwapResult {
  const { swap } = phase;
  if (phase.at === "settling") return settle(sandbox, operation, swap, reply, context);
  if (reply.outcome === "written") {
    return { kind: "applied", present: { head: swap.next, version: reply.version } };
  }
  // After an ambiguous attempt, even a clear failure of the next one leaves the first one open.
  if (reply.outcome === "failed" && !swap.uncertain) return { kind: "failed", error: reply.error };
  const uncertain = swap.uncertain || reply.outcome !== "conflict";
  return { kind: "pending", sandbox: look(sandbox, operation, { ...swap, uncertain }, context) };
}

/**
 * The pause is over, and the swap is sent again unchanged. If it had been applied after all, this would be a conflict.
 */
export function onSwapTimer(
  sandbox: SandboxState,
  operation: Operation,
  phase: SwapPhase,
  context: StepContext,
): SandboxState {
  return send(sandbox, operation, phase.swap, context);
}

/**
 * A lost write may still arrive. While the version that it expects is current, the same bytes are sent again: the two
 * exclude each other. Once another version exists without its nonce, it can never be applied.
 */
function settle(
  sandbox: SandboxState,
  operation: Operation,
  swap: PendingSwap,
  reply: Reply,
  context: StepContext,
): SwapResult {
  // An unreadable head does not tell whether an ambiguous attempt was applied: that stays open until a head can be
  // read.
  if (reply.outcome === "failed" && reply.permanent && !swap.uncertain) return { kind: "failed", error: reply.error };
  if (reply.outcome !== "head" && reply.outcome !== "absent") {
    return { kind: "pending", sandbox: rest(sandbox, operation, swap, context) };
  }
  const version = reply.outcome === "head" ? reply.version : undefined;
  if (version === swap.expected) return { kind: "pending", sandbox: rest(sandbox, operation, swap, context) };
  if (reply.outcome === "absent" || !("head" in reply.stored)) return { kind: "conflict", found: undefined };
  const found: VersionedHead = { head: reply.stored.head, version: reply.version };
  return cameFrom(found.head, swap) ? { kind: "applied", present: found } : { kind: "conflict", found };
}

/**
 * The history is short, so many requests on top may have pushed out the nonce. The claimant of an epoch and the pointer
 * of an epoch are in the head as well: only this instance could write either.
 */
function cameFrom(present: Head, { intent, from, next }: PendingSwap): boolean {
  if (present.nonce === next.nonce || present.history.includes(next.nonce)) return true;
  if (next.owner === null || present.owner !== next.owner || present.epoch !== next.epoch) return false;
  if (intent === "claim" || intent === "create") return true;
  // Within one owner, only a move of its own raises the epoch.
  if (intent === "own" && next.epoch !== from?.epoch) return true;
  const moved = next.checkpoint?.name;
  return intent === "own" && moved !== from?.checkpoint?.name && present.checkpoint?.name === moved;
}

function send(sandbox: SandboxState, operation: Operation, swap: PendingSwap, context: StepContext): SandboxState {
  const { sandboxId } = sandbox;
  const { expected, next } = swap;
  const id = context.request("sandbox", sandboxId, { kind: "swap-head", sandboxId, expected, next });
  return at(sandbox, operation, "swapping", id, swap);
}

function look(sandbox: SandboxState, operation: Operation, swap: PendingSwap, context: StepContext): SandboxState {
  const { sandboxId } = sandbox;
  const id = context.request("sandbox", sandboxId, { kind: "read-head", sandboxId });
  return at(sandbox, operation, "settling", id, swap);
}

function rest(sandbox: SandboxState, operation: Operation, swap: PendingSwap, context: StepContext): SandboxState {
  const id = context.timer("sandbox", sandbox.sandboxId, swap.retryMs);
  const retryMs = Math.min(swap.retryMs * 2, context.view.settings.longestRetryMs);
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
