import type { Head } from "@sandboxer/protocol";
import type { Failure, Holder } from "./effects.ts";
import type { Command, VersionedHead } from "./messages.ts";
import type { StepContext } from "./step-context.ts";

/** The knowledge of this instance about one sandbox, and its operation in progress. */
export interface SandboxState {
  readonly sandboxId: string;
  /** The head as of the last look or change, while this instance is the owner. */
  readonly held: VersionedHead | undefined;
  /** The request that the manager was last told of. */
  readonly announced: string | undefined;
  /** A look at the head for requests. Void as soon as an operation begins. */
  readonly look: number | undefined;
  readonly operation: Operation | undefined;
  readonly queue: readonly Order[];
}

export interface Order {
  readonly ticket: number | undefined;
  readonly command: Command;
}

/** One command at a time for each sandbox; it ends when its outcome is known, even if nobody waits any more. */
export interface Operation extends Order {
  readonly phase: Phase;
  /** When a claim stops waiting. */
  readonly deadlineMs: number | undefined;
  /** The owner of the sandbox that a claim requests. */
  readonly holder: Holder | undefined;
  /** The owner that the caller was told of. */
  readonly toldOf: string | undefined;
  /** Identifies the `want` of this claim. */
  readonly request: string | undefined;
}

export type Phase =
  | { readonly at: "beginning" }
  | { readonly at: "reading"; readonly id: number }
  | { readonly at: "liveness"; readonly id: number; readonly base: VersionedHead }
  | { readonly at: "waiting"; readonly id: number }
  | SwapPhase;

export interface SwapPhase {
  readonly at: "swapping" | "settling" | "resting";
  readonly id: number;
  readonly swap: PendingSwap;
}

/** A swap whose outcome is unknown. */
export interface PendingSwap {
  readonly intent: "create" | "claim" | "ask" | "withdraw" | "own";
  readonly expected: string | undefined;
  /** The head that it replaces. */
  readonly from: Head | undefined;
  readonly next: Head;
  /** An attempt was ambiguous, so it may still be applied. */
  readonly uncertain: boolean;
  readonly retryMs: number;
}

export function emptySandbox(sandboxId: string): SandboxState {
  return {
    sandboxId,
    held: undefined,
    announced: undefined,
    look: undefined,
    operation: undefined,
    queue: [],
  };
}

export function newOperation({ ticket, command }: Order): Operation {
  return {
    ticket,
    command,
    phase: { at: "beginning" },
    deadlineMs: undefined,
    holder: undefined,
    toldOf: undefined,
    request: undefined,
  };
}

export function inPhase(sandbox: SandboxState, operation: Operation, phase: Phase): SandboxState {
  return { ...sandbox, operation: { ...operation, phase } };
}

export function done(sandbox: SandboxState, operation: Operation, head: Head, context: StepContext): SandboxState {
  if (operation.ticket !== undefined) context.tell({ kind: "answered", ticket: operation.ticket, head });
  return { ...sandbox, operation: undefined };
}

export function fail(
  sandbox: SandboxState,
  operation: Operation,
  failure: Failure,
  context: StepContext,
): SandboxState {
  if (operation.ticket !== undefined) context.tell({ kind: "failed", ticket: operation.ticket, failure });
  return { ...sandbox, operation: undefined };
}

/** Another instance owns the sandbox: the copy here must be ended. */
export function lose(sandbox: SandboxState, head: Head | undefined, context: StepContext): SandboxState {
  if (sandbox.held === undefined) return sandbox;
  context.tell({ kind: "lost", sandboxId: sandbox.sandboxId, head });
  return { ...sandbox, held: undefined, announced: undefined };
}

export function isOurs({ head }: VersionedHead, me: string, epoch: number): boolean {
  return head.owner === me && head.epoch === epoch;
}
