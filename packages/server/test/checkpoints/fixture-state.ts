import { mkdir, writeFile } from "node:fs/promises";
import { dirname, join } from "node:path";
import type { SnapshotPayload } from "../../src/backends/backend.ts";
import type { ImageLabel } from "../../src/checkpoints/image-context.ts";

export const FIXTURE_LABEL: ImageLabel = {
  sandboxId: "6f1b1c1e-8a57-4d6e-9d0a-3c5b1f2e4a60",
  createdAt: "2026-11-15T05:00:00.000Z",
  parent: "checkpoint_1794718800000.img",
};

const CONTENTS: Readonly<Record<string, Uint8Array>> = {
  "checkpoint.img": Buffer.from("the kernel's state\n"),
  "pages.img": Buffer.from(Array.from({ length: 5000 }, (_, at) => (at * 7) % 251)),
  "empty.img": Buffer.alloc(0),
  "config/spec.json": Buffer.from('{"version":1}\n'),
};

/** The state whose image is frozen in `fixtures/image-format-1.img`. */
export async function writeFixtureState(folder: string): Promise<SnapshotPayload> {
  const members = [];
  for (const [name, content] of Object.entries(CONTENTS)) {
    const path = join(folder, name);
    await mkdir(dirname(path), { recursive: true });
    await writeFile(path, content);
    members.push({ name, path, sizeBytes: content.byteLength });
  }
  return { kind: "gvisor-checkpoint", members, requirements: { engine: "runsc 20240729", platform: "systrap" } };
}
