import type { Retention } from "@sandboxer/protocol";
import type { ObjectStore } from "../store/store.ts";
import type { Clock } from "../support/clock.ts";
import type { PackSurveyor } from "./pack-survey.ts";

export type GarbageKind =
  /** Everything below `checkpoints/` of a sandbox that has a tombstone. */
  | "destroyed"
  /** The head of a sandbox that was never saved, and that died with its server. */
  | "lost-sandbox"
  /** An image newer than its head's checkpoint that nobody can publish any more. */
  | "unpublished"
  | "past-retention"
  /** A mark of a removed image, older than its head's checkpoint, which is no longer needed. */
  | "removal-mark"
  /** A snapshot that was never finished, is half removed, or lost its name to a later one. */
  | "snapshot"
  /** An unnamed snapshot beyond retention. */
  | "old-snapshot"
  /** A pack that no image references and nobody is about to use. */
  | "pack"
  /** A pin of a writer that no longer exists. */
  | "pin"
  /** A verdict of an interrupted collection whose packs are removed. */
  | "verdict"
  /** A data key whose sandboxes and snapshots are all deleted. */
  | "data-key"
  /** The record of a dead server that no head names. */
  | "server-record"
  | "bell"
  | "probe";

export interface Garbage {
  readonly kind: GarbageKind;
  /** The object's key; a folder's for a probe. */
  readonly key: string;
  readonly sizeBytes: number;
}

/** Data that may be garbage and was not judged, with the reason. */
export interface LeftAlone {
  readonly key: string;
  readonly reason: LeftReason;
}

export type LeftReason =
  | "owned by a living server"
  | "owned by a server without a record"
  | "without a head"
  | "its head cannot be read"
  | "the image that its head names is missing"
  | "claimed by a server meanwhile"
  | "its record cannot be read"
  | "a save may be in progress"
  | "a removal may be in progress"
  | "a head that cannot be read may name it"
  | "its packs are unknown"
  | "its record is missing, and an image needs it"
  | "beyond retention, but kept by its provider"
  | "in use";

export interface Findings {
  readonly garbage: readonly Garbage[];
  readonly left: readonly LeftAlone[];
}

const DAMAGE: ReadonlySet<LeftReason> = new Set([
  "its head cannot be read",
  "its record cannot be read",
  "its packs are unknown",
]);

/** Damaged data that was not touched, by the names of the objects or files. */
export function damagedIn({ left }: Findings): readonly string[] {
  return left.filter(({ reason }) => DAMAGE.has(reason)).map(({ key }) => key);
}

export const NOTHING: Findings = { garbage: [], left: [] };

export interface CollectionContext {
  readonly store: ObjectStore;
  readonly clock: Clock;
  /** False: only report what would be removed. */
  readonly apply: boolean;
  /** Retention of sandboxes without a rule; absent: everything is kept. */
  readonly keep: Retention;
  /** Knows which packs images need; absent: starts without knowledge. */
  readonly packs?: PackSurveyor;
  readonly signal?: AbortSignal;
}

export function leftAlone(key: string, reason: LeftReason): Findings {
  return { garbage: [], left: [{ key, reason }] };
}

export function together(parts: readonly Findings[]): Findings {
  return { garbage: parts.flatMap(({ garbage }) => garbage), left: parts.flatMap(({ left }) => left) };
}
