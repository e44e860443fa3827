import type { CheckpointReference, Head } from "@sandboxer/protocol";
import type { HeadDetails, NewSandbox, NewHome } from "../head.ts";
import type { StoredRecord } from "../head-codec.ts";
import type { LivenessRecord } from "../liveness-record.ts";

/** Which part of the core asked for something, and its number: an answer to a question that nobody has any more is ignored. */
export interface Address {
  readonly part: "self" | "others" | "sandbox" | "sweep";
  /** The sandbox or the other instance that it is about; "" otherwise. */
  readonly name: string;
  readonly id: number;
}

/** A head as it is in the store, with the version under which it can be replaced. */
export interface VersionedHead {
  readonly head: Head;
  readonly version: string;
}

/**
 * The epoch at which the caller holds the sandbox. This instance may have lost the sandbox and taken it again since; then
 * what the caller knows of it is not its state any more.
 */
interface AtEpoch {
  readonly epoch: number;
}

/** What the manager asks for. */
export type Command =
  /** Of one whose id nobody has ever had it is not looked first whether there is anything. */
  | { readonly kind: "create"; readonly sandbox: NewSandbox; readonly isFresh?: boolean | undefined }
  /** Without a handoff time, a sandbox that a living instance owns is not asked for. */
  | { readonly kind: "claim"; readonly handoffTimeoutMs: number | undefined }
  | (AtEpoch & {
      readonly kind: "publish";
      readonly checkpoint: CheckpointReference;
      readonly status: string | undefined;
    })
  | (AtEpoch & {
      readonly kind: "release";
      readonly checkpoint: CheckpointReference | undefined;
      /** Of one that its provider keeps; see `release` in `head.ts`. */
      readonly stoppedAt?: string | null | undefined;
    })
  | (AtEpoch & { readonly kind: "update"; readonly details: HeadDetails })
  | (AtEpoch & { readonly kind: "rehouse"; readonly home: NewHome })
  | { readonly kind: "refuse"; readonly reason: string }
  /** A sandbox that is not held is claimed first. */
  | { readonly kind: "destroy"; readonly handoffTimeoutMs: number | undefined };

/** The one answer that every request to the store gets, within a bounded time. */
export type Reply =
  | { readonly outcome: "absent" }
  | { readonly outcome: "head"; readonly stored: StoredRecord; readonly version: string }
  /** Without a record: it is there, and this release cannot read it. */
  | { readonly outcome: "record"; readonly record: LivenessRecord | undefined; readonly version: string }
  | { readonly outcome: "list"; readonly instanceIds: readonly string[] }
  | { readonly outcome: "written"; readonly version: string }
  | { readonly outcome: "conflict" }
  /** It is unknown whether the swap was, or may still be, applied. */
  | { readonly outcome: "ambiguous" }
  /** Nothing was read, or nothing was or will be written. `permanent`: asking again would not help. */
  | { readonly outcome: "failed"; readonly error: unknown; readonly permanent: boolean };

/** What happens to an instance. Time is told with each event, and is asked for nowhere. */
export type LeaseEvent = {
  /** The instance's own clock, which never goes back. */
  readonly nowMs: number;
  /** For the times in heads, which decide nothing. */
  readonly wallMs: number;
} & (
  | { readonly kind: "start"; readonly instanceId: string }
  | { readonly kind: "reply"; readonly to: Address; readonly reply: Reply }
  | { readonly kind: "timer"; readonly to: Address }
  | { readonly kind: "command"; readonly sandboxId: string; readonly ticket: number; readonly command: Command }
  /** Nobody waits for the answer any more. */
  | { readonly kind: "abandon"; readonly sandboxId: string; readonly ticket: number }
  /** The manager has thrown its copy away. */
  | { readonly kind: "forget"; readonly sandboxId: string }
  /** Somebody says that it asks for a sandbox. */
  | { readonly kind: "rung"; readonly sandboxId: string | undefined }
  /** An instance is known to be dead, whatever its record says. */
  | { readonly kind: "bury"; readonly instanceId: string; readonly ticket: number }
  | { readonly kind: "close"; readonly ticket: number }
);
