import { mkdir } from "node:fs/promises";
import { join } from "node:path";
import type { SnapshotPayload } from "../../src/backends/backend.ts";
import { SnapshotRepository } from "../../src/checkpoints/snapshot-repository.ts";
import { DirectoryStore } from "../../src/store/directory/directory-store.ts";
import { newSnapshot } from "../checkpoints/snapshot-samples.ts";

/** The snapshot as another server loads it from a store; both are in the folder. */
export async function throughStore(state: SnapshotPayload, folder: string): Promise<SnapshotPayload> {
  const root = join(folder, "store");
  const into = join(folder, "loaded");
  for (const path of [root, into]) await mkdir(path);
  const open = async (): Promise<SnapshotRepository> =>
    new SnapshotRepository(await DirectoryStore.open(root), { publisher: () => "server-1" });
  const { snapshot } = await (
    await open()
  ).save(newSnapshot({ name: null }), async () => ({ state }), {
    replaceName: true,
  });
  return (await open()).load(snapshot.id, into);
}
