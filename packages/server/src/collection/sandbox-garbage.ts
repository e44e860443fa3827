import type { Head, Keep } from "@sandboxer/protocol";
import { checkpointMs, removalMarkMs } from "../checkpoints/checkpoint-names.ts";
import { keptBy } from "../checkpoints/retention.ts";
import type { GarbageKind } from "./garbage.ts";

/** A file below a sandbox's `checkpoints/`. */
export interface CheckpointFile {
  readonly name: string;
  readonly sizeBytes: number;
}

export interface SandboxGarbage {
  readonly files: readonly (CheckpointFile & { readonly kind: GarbageKind })[];
  /** The greatest number of a removed image above all kept ones: mark it before. */
  readonly markMs: number | undefined;
}

/**
 * The unreferenced data of a sandbox, provided that nobody can publish for it while this head stands. No I/O. Published
 * names only grow, so an image newer than the head's was never published. Of those up to the head's, the rule decides,
 * published or not: that is unknown. Undefined if the head's image is missing: the other images may be what the user
 * wants back.
 */
export function garbageOfSandbox(
  head: Head,
  files: readonly CheckpointFile[],
  rules: { readonly keep: Keep | undefined; readonly isReferenced: (name: string) => boolean },
): SandboxGarbage | undefined {
  const free = files.filter(({ name }) => !rules.isReferenced(name));
  if (head.state === "deleted")
    return { files: free.map((file) => ({ ...file, kind: "destroyed" })), markMs: undefined };
  const headName = head.checkpoint?.name;
  if (headName !== undefined && !files.some(({ name }) => name === headName)) return undefined;
  const headMs = headName === undefined ? -1 : checkpointMs(headName);
  if (headMs === undefined) return undefined;

  const kept = keptNames(files, headMs, rules.keep);
  const judged = free.flatMap((file) => {
    const kind = file.name === headName ? undefined : kindOf(file.name, headMs, kept);
    return kind === undefined ? [] : [{ ...file, kind }];
  });
  const unpublished = judged.filter(({ kind }) => kind === "unpublished").map(({ name }) => checkpointMs(name) ?? -1);
  return { files: judged, markMs: unpublished.length === 0 ? undefined : Math.max(...unpublished) };
}

function kindOf(name: string, headMs: number, kept: ReadonlySet<string>): GarbageKind | undefined {
  const markMs = removalMarkMs(name);
  if (markMs !== undefined) return markMs < headMs ? "removal-mark" : undefined;
  const imageMs = checkpointMs(name);
  if (imageMs === undefined || kept.has(name)) return undefined;
  return imageMs > headMs ? "unpublished" : "past-retention";
}

function keptNames(files: readonly CheckpointFile[], headMs: number, keep: Keep | undefined): ReadonlySet<string> {
  const upToHead = files
    .map(({ name }) => ({ name, ms: checkpointMs(name) ?? Infinity }))
    .filter(({ ms }) => ms <= headMs);
  const kept = keep === undefined ? upToHead : [...keptBy(keep, upToHead)];
  return new Set(kept.map(({ name }) => name));
}
