import type { Head } from "@sandboxer/protocol";
import type { Failure, Holder } from "./effects.ts";
import type { Command, VersionedHead } from "./messages.ts";
import type { Turn } from "./turn.ts";

/** What this instance knows of one sandbox, and what it is doing about it. */
export interface SandboxState {
  readonly sandboxId: string;
  /** The head as of the last look or change, while this instance is the owner. */
  readonly held: VersionedHead | undefined;
  /** The request that the manager was told of last. */
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

/** One command at a time for each sandbox; it ends when its outcome is known, whether or not somebody still waits. */
export interface Operation extends Order {
  readonly phase: Phase;
  /** When a claim stops waiting. */
  readonly deadlineMs: number | undefined;
  /** Who has the sandbox that a claim asks for. */
  readonly holder: Holder | undefined;
  /** The owner that the caller was told of. */
  readonly toldOf: string | undefined;
  /** Marks the `want` of this claim. */
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

/** A swap whose outcome is not known yet. */
export interface PendingSwap {
  readonly intent: "create" | "claim" | "ask" | "withdraw" | "own";
  readonly expected: string | undefined;
  /** What it replaces. */
  readonly from: Head | undefined;
  readonly next: Head;
  /** An attempt was ambiguous, so that it may still be applied. */
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

export function done(sandbox: SandboxState, operation: Operation, head: Head, turn: Turn): SandboxState {
  if (operation.ticket !== undefined) turn.tell({ kind: "answered", ticket: operation.ticket, head });
  return { ...sandbox, operation: undefined };
}

export function fail(sandbox: SandboxState, operation: Operation, failure: Failure, turn: Turn): SandboxState {
  if (operation.ticket !== undefined) turn.tell({ kind: "failed", ticket: operation.ticket, failure });
  return { ...sandbox, operation: undefined };
}

/** The sandbox is somebody else's: the copy here must go. */
export function lose(sandbox: SandboxState, head: Head | undefined, turn: Turn): SandboxState {
  if (sandbox.held === undefined) return sandbox;
  turn.tell({ kind: "lost", sandboxId: sandbox.sandboxId, head });
  return { ...sandbox, held: undefined, announced: undefined };
}

export function isOurs({ head }: VersionedHead, me: string, epoch: number): boolean {
  return head.owner === me && head.epoch === epoch;
}
