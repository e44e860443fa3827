import { randomBytes, randomUUID } from "node:crypto";
import { mkdir, readdir, readFile, writeFile } from "node:fs/promises";
import { join } from "node:path";
import { beforeEach, describe, expect, it } from "vitest";
import { CheckpointRepository } from "../../src/checkpoints/checkpoint-repository.ts";
import { ImageStore } from "../../src/checkpoints/image-store.ts";
import { SnapshotRepository } from "../../src/checkpoints/snapshot-repository.ts";
import { UnpackedImages } from "../../src/checkpoints/unpacked-images.ts";
import { DirectoryStore } from "../../src/store/directory/directory-store.ts";
import { temporaryFolder } from "../../../../test/kit/temporary-folder.ts";
import { stateOf } from "./block-image/block-images.ts";
import { newSnapshot } from "./snapshot-samples.ts";

const MEMORY = randomBytes(300_000);
let folder: string;
let server: Awaited<ReturnType<typeof openServer>>;

async function openServer(root: string, images: string) {
  const store = await DirectoryStore.open(root);
  const imageStore = new ImageStore(store, { unpacked: new UnpackedImages(images, 1024 ** 3) });
  const checkpoints = new CheckpointRepository(store, imageStore);
  let wallMs = 1_790_000_000_000;
  return {
    root,
    store,
    images: imageStore,
    checkpoints,
    snapshots: new SnapshotRepository(store, { publisher: () => "server-1", images: imageStore }),
    save: async (id: string) =>
      await checkpoints.save(id, await stateOf({ memory: MEMORY }), { wallMs: ++wallMs, parent: null }),
  };
}

const copies = async (): Promise<readonly string[]> => (await readdir(folder)).toSorted();

beforeEach(async () => {
  folder = await temporaryFolder();
  server = await openServer(await temporaryFolder(), folder);
});

describe("the unpacked copy of an image on this machine", () => {
  it("is removed with a deleted sandbox, and only with that", async () => {
    const [id, other] = [randomUUID(), randomUUID()];
    await server.save(id);
    await server.save(id);
    const { sha256 } = await server.save(other);
    expect(await copies()).toHaveLength(3);
    await server.checkpoints.removeAll(id);
    expect(await copies()).toEqual([sha256]);
  });

  it("is removed with a checkpoint beyond retention", async () => {
    const id = randomUUID();
    await server.save(id);
    const { name, sha256 } = await server.save(id);
    await server.checkpoints.prune(id, name, { keep_last: 1 });
    expect(await copies()).toEqual([sha256]);
  });

  it("is removed with a deleted snapshot, even if a restore brought it here", async () => {
    const state = await stateOf({ memory: MEMORY });
    const { snapshot } = await server.snapshots.save(newSnapshot({ name: null }), async () => ({ state }), {
      replaceName: true,
    });
    await server.images.forgetCopies([`snapshots/${snapshot.id}/image.img`]);
    expect(await copies()).toEqual([]);
    await server.snapshots.load(snapshot.id, await temporaryFolder());
    expect(await copies()).toHaveLength(1);
    await server.snapshots.remove(snapshot.id, async () => {});
    expect(await copies()).toEqual([]);
  });

  it("is removed if another server has removed the image, or its image is unknown", async () => {
    const [id, other] = [randomUUID(), randomUUID()];
    await server.save(id);
    const { sha256 } = await server.save(other);
    await mkdir(join(folder, "0".repeat(64)));
    await writeFile(join(folder, "0".repeat(64), "memory"), MEMORY);
    await (await openServer(server.root, await temporaryFolder())).checkpoints.removeAll(id);
    expect(await copies()).toHaveLength(3);
    await server.images.forgetCopiesOfRemoved();
    expect(await copies()).toEqual([sha256]);
  });

  it("stays with its loader", async () => {
    const id = randomUUID();
    const { name } = await server.save(id);
    const into = await temporaryFolder();
    const { members } = await server.checkpoints.load(id, name, into);
    await server.checkpoints.removeAll(id);
    expect(await copies()).toEqual([]);
    expect((await readFile(members[0]?.path ?? "")).equals(MEMORY)).toBe(true);
  });
});
