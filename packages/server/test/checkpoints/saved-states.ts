import { randomBytes } from "node:crypto";
import { mkdir, readFile, writeFile } from "node:fs/promises";
import { dirname, join } from "node:path";
import type { SnapshotMember, SnapshotPayload } from "../../src/backends/backend.ts";
import { temporaryFolder } from "../../../../test/kit/temporary-folder.ts";

export const REQUIREMENTS = { engine: "fake", version: 3, features: ["a", "b"] };

/** A saved state with members of the given sizes and random content. */
export async function savedState(sizes: Readonly<Record<string, number>>): Promise<SnapshotPayload> {
  const folder = await temporaryFolder();
  const members: SnapshotMember[] = [];
  for (const [name, sizeBytes] of Object.entries(sizes)) {
    const path = join(folder, name);
    await mkdir(dirname(path), { recursive: true });
    await writeFile(path, randomBytes(sizeBytes));
    members.push({ name, path, sizeBytes });
  }
  return { kind: "fake-state", members, requirements: REQUIREMENTS };
}

export async function contentsOf(state: SnapshotPayload): Promise<Record<string, string>> {
  const contents: Record<string, string> = {};
  for (const { name, path } of state.members) contents[name] = (await readFile(path)).toString("base64");
  return contents;
}
