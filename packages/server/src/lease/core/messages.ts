import type { CheckpointReference, Head } from "@sandboxer/protocol";
import type { HeadDetails, NewSandbox, NewHome, Replacement } from "../head.ts";
import type { StoredRecord } from "../head-codec.ts";
import type { Advert, LivenessRecord } from "../liveness-record.ts";

/** The part of the core that made a request, and its number: an answer to an abandoned request is ignored. */
export interface Address {
  readonly part: "self" | "others" | "sandbox" | "sweep";
  /** The sandbox or instance that it is about; "" otherwise. */
  readonly name: string;
  readonly id: number;
}

/** A head as stored, with the version that is needed to replace it. */
export interface VersionedHead {
  readonly head: Head;
  readonly version: string;
}

/**
 * The epoch at which the caller holds the sandbox. This instance may have lost and reclaimed the sandbox since; then
 * the caller's knowledge is outdated.
 */
interface AtEpoch {
  readonly epoch: number;
}

/** A liveness record as a list shows it: enough to see that it changed, and whether it may say dead now. */
export interface ListedRecord {
  readonly instanceId: string;
  readonly mark: string;
  readonly sizeBytes: number;
}

/** Commands of the manager. */
export type Command =
  /** For a new id, the store is not read first. */
  | { readonly kind: "create"; readonly sandbox: NewSandbox; readonly isFresh?: boolean | undefined }
  /** Without a handoff time, a live owner is not asked. */
  | { readonly kind: "claim"; readonly handoffTimeoutMs: number | undefined }
  | (AtEpoch & {
      readonly kind: "publish";
      readonly checkpoint: CheckpointReference;
      readonly status: string | undefined;
    })
  | (AtEpoch & {
      readonly kind: "release";
      readonly checkpoint: CheckpointReference | undefined;
      /** For a sandbox that its provider keeps; see `release` in `head.ts`. */
      readonly stoppedAt?: string | null | undefined;
    })
  | (AtEpoch & { readonly kind: "update"; readonly details: HeadDetails })
  | (AtEpoch & { readonly kind: "rehouse"; readonly home: NewHome })
  | (AtEpoch & { readonly kind: "replace"; readonly replacement: Replacement })
  | { readonly kind: "refuse"; readonly reason: string }
  /** A sandbox that is not held is claimed first. */
  | { readonly kind: "destroy"; readonly handoffTimeoutMs: number | undefined };

/** The single reply to each store request, within a bounded time. */
export type Reply =
  | { readonly outcome: "absent" }
  | { readonly outcome: "head"; readonly stored: StoredRecord; readonly version: string }
  /** Without a record: it exists, but this release cannot read it. */
  | { readonly outcome: "record"; readonly record: LivenessRecord | undefined; readonly version: string }
  | { readonly outcome: "list"; readonly records: readonly ListedRecord[] }
  | { readonly outcome: "written"; readonly version: string }
  | { readonly outcome: "conflict" }
  /** It is unknown whether the swap was, or may still be, applied. */
  | { readonly outcome: "ambiguous" }
  /** Nothing was read, or nothing was or will be written. `permanent`: retrying would not help. */
  | { readonly outcome: "failed"; readonly error: unknown; readonly permanent: boolean };

/** The events of an instance. Each event carries the time; the core never reads a clock. */
export type LeaseEvent = {
  /** The instance's own monotonic clock. */
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
  /** The manager has ended its copy. */
  | { readonly kind: "forget"; readonly sandboxId: string }
  /** Another instance says that it requests a sandbox. */
  | { readonly kind: "rung"; readonly sandboxId: string | undefined }
  /** An instance is known to be dead, whatever its record says. */
  | { readonly kind: "bury"; readonly instanceId: string; readonly ticket: number }
  /** The next renewal publishes it. */
  | { readonly kind: "advertise"; readonly advert: Advert }
  | { readonly kind: "close"; readonly ticket: number }
);
