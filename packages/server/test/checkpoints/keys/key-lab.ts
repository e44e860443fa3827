import { randomBytes, randomUUID } from "node:crypto";
import { readdir, readFile } from "node:fs/promises";
import { join } from "node:path";
import { type CheckpointReference, isErrno } from "@sandboxer/protocol";
import { CheckpointRepository } from "../../../src/checkpoints/checkpoint-repository.ts";
import { ImageStore } from "../../../src/checkpoints/image-store.ts";
import type { KeyChoice } from "../../../src/checkpoints/data-keys.ts";
import { keyUnavailable } from "../../../src/checkpoints/keys/key-errors.ts";
import { MasterKey } from "../../../src/checkpoints/keys/master-key.ts";
import type { MasterKeys } from "../../../src/checkpoints/keys/master-keys.ts";
import { StoredDataKeys } from "../../../src/checkpoints/keys/stored-data-keys.ts";
import { SnapshotRepository } from "../../../src/checkpoints/snapshot-repository.ts";
import { DirectoryStore } from "../../../src/store/directory/directory-store.ts";
import type { ObjectStore } from "../../../src/store/store.ts";
import { temporaryFolder } from "../../../../../test/kit/temporary-folder.ts";
import { stateOf } from "../block-image/block-images.ts";

export function newKey(): MasterKey {
  return new MasterKey(randomBytes(32));
}

/** The keys of a server; those that come and go do so under its feet. */
export function serverKeys(
  keys: Map<string, MasterKey>,
  defaultName?: string,
  oldNames: readonly string[] = [],
): MasterKeys {
  return {
    defaultName,
    oldNames,
    resolve: async (name) => {
      const key = keys.get(name);
      if (key === undefined) throw keyUnavailable(`There is no secret "${name}" on this server.`);
      return key;
    },
  };
}

/** A server's view of a store. */
export function serverOn(store: ObjectStore, masters?: MasterKeys) {
  const dataKeys = new StoredDataKeys(store, masters);
  const images = new ImageStore(store, { dataKeys });
  const checkpoints = new CheckpointRepository(store, images);
  const snapshots = new SnapshotRepository(store, { publisher: () => "server-1", images });
  return {
    dataKeys,
    images,
    checkpoints,
    snapshots,
    save: async (
      sandboxId: string,
      members: Readonly<Record<string, Uint8Array>>,
      more: KeyChoice & { readonly parent?: string; readonly base?: string } = {},
    ): Promise<CheckpointReference> =>
      await checkpoints.save(sandboxId, await stateOf(members), { wallMs: 1_790_000_000_000, parent: null, ...more }),
    load: async (sandboxId: string, name: string, options: KeyChoice = {}): Promise<Record<string, Buffer>> => {
      const { members } = await checkpoints.load(sandboxId, name, await temporaryFolder(), options);
      const read = members.map(async (member) => [member.name, await readFile(member.path)] as const);
      return Object.fromEntries(await Promise.all(read));
    },
  };
}

export async function openStore(): Promise<{ readonly root: string; readonly store: DirectoryStore }> {
  const root = await temporaryFolder();
  return { root, store: await DirectoryStore.open(root) };
}

/** Every file below a folder, versions of cells included, by its path. */
export async function filesIn(root: string): Promise<ReadonlyMap<string, Buffer>> {
  const entries = await readdir(root, { recursive: true, withFileTypes: true });
  const files = entries.filter((entry) => entry.isFile()).map((entry) => join(entry.parentPath, entry.name));
  const found = new Map<string, Buffer>();
  for (const path of files) {
    // Servers on the store write meanwhile: a draft may have got its name since.
    const bytes = await readFile(path).catch(unlessGone);
    if (bytes !== undefined) found.set(path, bytes);
  }
  return found;
}

function unlessGone(error: unknown): undefined {
  if (!isErrno(error) || error.code !== "ENOENT") throw error;
}

export function newId(): string {
  return randomUUID();
}
