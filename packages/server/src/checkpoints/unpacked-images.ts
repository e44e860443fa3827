import { link, mkdir, readdir, readFile, rename, rm, stat, utimes, writeFile } from "node:fs/promises";
import { dirname, join } from "node:path";
import { randomUUID } from "node:crypto";
import type { SnapshotMember } from "../backends/backend.ts";
import { type Kept, removeAbandonedDrafts, tooMuch } from "./local-room.ts";

const NAME = /^[0-9a-f]{64}$/;
/** Beside the members, none of which can have this name: the key of the image in the store. */
const IMAGE = ".image";

/**
 * Members of images as plain files on this machine, under the image's digest: images that were just saved or unpacked
 * here. They are hard-linked in and out, never copied, and never written to: a user keeps its links when they are
 * removed here, and must compare them with the image again. Failures are misses: the image is in the store.
 */
export class UnpackedImages {
  readonly #folder: string;
  readonly #limitBytes: number;

  constructor(folder: string, limitBytes: number) {
    this.#folder = folder;
    this.#limitBytes = limitBytes;
  }

  /**
   * Keeps members of an image of the store, which must be files of the same file system that nobody writes to any more.
   */
  async keep(sha256: string, members: readonly SnapshotMember[], imageKey: string): Promise<void> {
    const sizeBytes = members.reduce((sum, member) => sum + member.sizeBytes, 0);
    if (sizeBytes > this.#limitBytes) return;
    const draft = join(this.#folder, `.draft-${randomUUID()}`);
    try {
      await mkdir(draft, { recursive: true, mode: 0o700 });
      await linkAll(members, draft);
      await writeFile(join(draft, IMAGE), imageKey, { mode: 0o600 });
      await rename(draft, this.#path(sha256));
    } catch {
      await rm(draft, { recursive: true, force: true }).catch(() => {});
    }
    await this.#evict().catch(() => {});
  }

  /** Links the members into a folder; false if some are missing, and then nothing was linked. */
  async take(sha256: string, names: readonly string[], into: string): Promise<boolean> {
    const from = this.#path(sha256);
    const linked: string[] = [];
    try {
      for (const name of names) {
        await mkdir(dirname(join(into, name)), { recursive: true });
        await link(join(from, name), join(into, name));
        linked.push(name);
      }
      const now = new Date();
      await utimes(from, now, now);
      return true;
    } catch {
      for (const name of linked) await rm(join(into, name), { force: true }).catch(() => {});
      return false;
    }
  }

  /** The paths of members; empty if some are missing. They may be removed at any time. */
  async find(sha256: string, members: readonly Omit<SnapshotMember, "path">[]): Promise<readonly SnapshotMember[]> {
    const found = members.map((member) => ({ ...member, path: join(this.#path(sha256), member.name) }));
    const sizes = await Promise.all(found.map(async ({ path }) => (await stat(path).catch(() => undefined))?.size));
    return found.every(({ sizeBytes }, index) => sizes[index] === sizeBytes) ? found : [];
  }

  async forget(sha256: string): Promise<void> {
    await rm(this.#path(sha256), { recursive: true, force: true });
  }

  /** Removes those of removed images. */
  async forgetImages(keys: readonly string[]): Promise<void> {
    await this.forgetUnless(async (key) => !keys.includes(key));
  }

  /** Removes those whose image is not known to be in the store, and those that do not name it. */
  async forgetUnless(isStored: (imageKey: string) => Promise<boolean>): Promise<void> {
    for (const name of await this.#names()) {
      const key = await readFile(join(this.#path(name), IMAGE), "utf8").catch(() => undefined);
      if (key === undefined || !(await isStored(key))) await this.forget(name);
    }
  }

  async #names(): Promise<readonly string[]> {
    return (await readdir(this.#folder).catch(() => [])).filter((name) => NAME.test(name));
  }

  #path(sha256: string): string {
    return join(this.#folder, sha256);
  }

  async #evict(): Promise<void> {
    const names = await this.#names();
    const look = async (name: string): Promise<Kept> => {
      const path = this.#path(name);
      return { name, usedMs: await mtimeOf(path), sizeBytes: await sizeOf(path) };
    };
    const kept = await Promise.all(names.map(look));
    for (const name of await tooMuch(this.#folder, this.#limitBytes, kept)) await this.forget(name);
    await removeAbandonedDrafts(this.#folder);
  }
}

async function linkAll(members: readonly SnapshotMember[], into: string): Promise<void> {
  for (const { name, path } of members) {
    await mkdir(dirname(join(into, name)), { recursive: true });
    await link(path, join(into, name));
  }
}

async function mtimeOf(path: string): Promise<number> {
  return (await stat(path).catch(() => undefined))?.mtimeMs ?? 0;
}

async function sizeOf(folder: string): Promise<number> {
  const entries = await readdir(folder, { recursive: true, withFileTypes: true }).catch(() => []);
  const files = entries.filter((entry) => entry.isFile());
  const sizes = await Promise.all(
    files.map(async (entry) => (await stat(join(entry.parentPath, entry.name)).catch(() => undefined))?.size ?? 0),
  );
  return sizes.reduce((sum, size) => sum + size, 0);
}
