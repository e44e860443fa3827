import type { Head } from "@sandboxer/protocol";
import type { LivenessRecord } from "../liveness-record.ts";
import type { Address } from "./messages.ts";

export type StoreRequest =
  | { readonly kind: "read-head"; readonly sandboxId: string }
  | {
      readonly kind: "swap-head";
      readonly sandboxId: string;
      readonly expected: string | undefined;
      readonly next: Head;
    }
  | { readonly kind: "read-record"; readonly instanceId: string }
  | {
      readonly kind: "swap-record";
      readonly instanceId: string;
      readonly expected: string | undefined;
      readonly next: LivenessRecord;
    }
  | { readonly kind: "list-records" };

/** Why a command was not carried out. */
export type Failure =
  | { readonly kind: "not-found" }
  | { readonly kind: "destroyed" }
  | { readonly kind: "already-there" }
  /** A live instance owns it, and was not asked. */
  | { readonly kind: "held"; readonly holder: Holder }
  /** The owner refused, or another instance is already waiting. */
  | { readonly kind: "refused"; readonly holder: Holder; readonly reason: string }
  | { readonly kind: "timed-out"; readonly holder: Holder }
  /** This instance does not own it, or not any more; `head` is the stored one, if known. */
  | { readonly kind: "lost"; readonly head: Head | undefined }
  | { readonly kind: "error"; readonly error: unknown };

export interface Holder {
  readonly head: Head;
  readonly url: string | undefined;
}

/** Notifications for the manager, or for the program that runs the core. */
export type Notice =
  | { readonly kind: "answered"; readonly ticket: number; readonly head: Head }
  | { readonly kind: "failed"; readonly ticket: number; readonly failure: Failure }
  /** A claim has asked the owner, and waits. */
  | {
      readonly kind: "waiting";
      readonly ticket: number;
      readonly sandboxId: string;
      readonly owner: string;
      readonly url: string | undefined;
    }
  /** Another instance requests a sandbox that is held here. Answered by a release or a refusal. */
  | { readonly kind: "wanted"; readonly sandboxId: string; readonly by: string }
  /** A held sandbox belongs to another instance: its copy must be ended, and nothing of it may be published. */
  | { readonly kind: "lost"; readonly sandboxId: string; readonly head: Head | undefined }
  | { readonly kind: "frozen"; readonly sandboxIds: readonly string[] }
  | { readonly kind: "thawed"; readonly sandboxIds: readonly string[] }
  | { readonly kind: "registered"; readonly instanceId: string }
  /** This instance was declared dead. It lost everything it held; it continues with a `start` under a new id. */
  | {
      readonly kind: "fenced";
      readonly instanceId: string;
      readonly reason: string;
      readonly sandboxIds: readonly string[];
    }
  /** Another instance is dead, whoever declared it. Told once for each. */
  | { readonly kind: "died"; readonly instanceId: string }
  | { readonly kind: "buried"; readonly ticket: number }
  | { readonly kind: "closed"; readonly ticket: number };

export type Effect =
  | { readonly kind: "request"; readonly from: Address; readonly request: StoreRequest }
  | { readonly kind: "timer"; readonly from: Address; readonly delayMs: number }
  | { readonly kind: "notice"; readonly notice: Notice };
