import { randomUUID } from "node:crypto";
import { copyFileSync, mkdirSync } from "node:fs";
import { join } from "node:path";
import type { SnapshotPayload } from "../../../../src/backends/backend.ts";

/** A copy that may be damaged, and that outlives its backend. */
export async function copyImage(folder: string, snapshot: SnapshotPayload): Promise<SnapshotPayload> {
  const into = join(folder, randomUUID());
  mkdirSync(into);
  const members = snapshot.members.map((member) => {
    const path = join(into, member.name);
    copyFileSync(member.path, path);
    return { ...member, path };
  });
  return { ...snapshot, members };
}
