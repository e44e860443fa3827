import { hash, randomBytes } from "node:crypto";
import { mkdir, readdir, readFile, writeFile } from "node:fs/promises";
import { dirname, join } from "node:path";
import type { SnapshotPayload } from "../../../src/backends/backend.ts";
import { ImageStore, type ImageStoreOptions, type SavedImage } from "../../../src/checkpoints/image-store.ts";
import { DirectoryStore } from "../../../src/store/directory/directory-store.ts";
import type { ObjectStore } from "../../../src/store/store.ts";
import { temporaryFolder } from "../../../../../test/kit/temporary-folder.ts";

export const PAGE = 4096;
export const BLOCK = 256 * 1024;

/** A store with images, and access to its internals. */
export interface ImageLab {
  readonly root: string;
  readonly store: ObjectStore;
  readonly images: ImageStore;
  /** Saves members under the next name. */
  save(members: Readonly<Record<string, Uint8Array>>, base?: SavedImage): Promise<SavedImage>;
  /** The result of a load, in the form of {@link asText}. */
  load(image: SavedImage): Promise<Record<string, string>>;
  packs(): Promise<readonly string[]>;
}

export async function openLab(options: ImageStoreOptions & { readonly remote?: boolean } = {}): Promise<ImageLab> {
  const root = await temporaryFolder();
  const directory = await DirectoryStore.open(root);
  const store = options.remote === true ? withoutFiles(directory) : directory;
  const images = new ImageStore(store, options);
  let count = 0;
  return {
    root,
    store,
    images,
    save: async (members, base) => {
      const key = `sandbox/checkpoints/checkpoint_${++count}.img`;
      const label = { sandboxId: "sandbox", createdAt: "2026-11-15T15:00:00.000Z", parent: null };
      return await images.save([key], await stateOf(members), label, { base: base?.key });
    },
    load: async ({ key }) => {
      const into = await temporaryFolder();
      const { members } = await images.unpack(await images.open(key), into);
      const read = members.map(async ({ name, path }) => [name, digestOf(await readFile(path))] as const);
      return Object.fromEntries(await Promise.all(read));
    },
    packs: async () => (await readdir(join(root, "packs")).catch(() => [])).toSorted(),
  };
}

export async function stateOf(members: Readonly<Record<string, Uint8Array>>): Promise<SnapshotPayload> {
  const folder = await temporaryFolder();
  const list = [];
  for (const [name, bytes] of Object.entries(members)) {
    const path = join(folder, name);
    await mkdir(dirname(path), { recursive: true });
    await writeFile(path, bytes);
    list.push({ name, path, sizeBytes: bytes.byteLength });
  }
  return { kind: "fake-state", members: list, requirements: {} };
}

/** Sizes and digests: faster to compare and easier to read than the bytes. */
export function asText(members: Readonly<Record<string, Uint8Array>>): Record<string, string> {
  return Object.fromEntries(Object.entries(members).map(([name, bytes]) => [name, digestOf(bytes)]));
}

function digestOf(bytes: Uint8Array): string {
  return `${bytes.byteLength} bytes, ${hash("sha256", bytes)}`;
}

/** The same bytes with some pages replaced by others. */
export function withNewPages(bytes: Uint8Array, pages: readonly number[]): Buffer {
  const changed = Buffer.from(bytes);
  for (const page of pages) changed.set(randomBytes(PAGE), page * PAGE);
  return changed;
}

/** Changes one bit of a file, as a disk does. */
export async function flip(path: string, at: number): Promise<void> {
  const bytes = await readFile(path);
  bytes[at] = (bytes[at] ?? 0) ^ 1;
  await writeFile(path, bytes);
}

/** A store like a bucket: its blobs are not files of this machine. */
function withoutFiles(store: DirectoryStore): ObjectStore {
  return new Proxy(store, {
    get: (target, name) => {
      if (name === "localFile") return undefined;
      const value: unknown = Reflect.get(target, name, target);
      return typeof value === "function" ? (value.bind(target) as unknown) : value;
    },
  });
}
