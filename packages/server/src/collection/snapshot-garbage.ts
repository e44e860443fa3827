import type { StoredSnapshot } from "../checkpoints/snapshot-record.ts";
import type { LeftReason } from "./garbage.ts";
import type { Survey } from "./survey.ts";

export interface SnapshotRules {
  readonly survey: Pick<Survey, "neededSnapshots" | "complete">;
  /** Whether a server may still act. */
  readonly lives: (instanceId: string) => Promise<boolean>;
  /** Whether it has a name, or had it. */
  readonly standing: (name: string, snapshotId: string) => Promise<"has" | "had" | "never">;
}

/**
 * What a snapshot is by its record. One without a record is garbage whoever lives: records come before images and go
 * after them.
 */
export async function judgeSnapshot(
  record: StoredSnapshot | "absent" | "unreadable",
  { survey, lives, standing }: SnapshotRules,
): Promise<"keep" | "garbage" | LeftReason> {
  if (record === "absent") return "garbage";
  if (record === "unreadable") return "its record cannot be read";
  const { state, publisher } = record;
  if (state === "saving") return (await lives(publisher)) ? "a save may be under way" : "garbage";
  if (state === "removing") {
    if (await lives(record.removed_by ?? "")) return "a removal may be under way";
  } else if (!(await hasLostItsName(record, { lives, standing }))) return "keep";
  if (survey.neededSnapshots.has(record.id)) return "in use";
  return survey.complete ? "garbage" : "a head that cannot be read may name it";
}

/** Taken under a name, over WebSocket, that is another's now, or that it never got because its server died. */
async function hasLostItsName(
  { id, reason, name, publisher, pinned }: StoredSnapshot,
  { lives, standing }: Pick<SnapshotRules, "lives" | "standing">,
): Promise<boolean> {
  if (reason !== "named" || name === null || pinned === true) return false;
  const stands = await standing(name, id);
  return stands === "had" || (stands === "never" && !(await lives(publisher)));
}
