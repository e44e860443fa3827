import { createReadStream } from "node:fs";
import { lstat, readdir, readlink } from "node:fs/promises";
import { join } from "node:path";
import { encodeHeader, endOfTar, padding } from "../tar/encode.ts";
import type { TarEntry } from "../tar/entry.ts";

export interface PackOptions {
  /** Whether a path, relative to the folder and with `/`, is included; for a folder, with its contents. */
  readonly filter?: ((path: string) => boolean) | undefined;
}

/**
 * A local folder as a tar archive: files, folders and symbolic links, by name. Sockets, pipes and devices are left out.
 */
export async function* packFolder(
  folder: string,
  { filter = () => true }: PackOptions = {},
): AsyncGenerator<Uint8Array, void, undefined> {
  yield* packBelow(folder, "", filter);
  yield endOfTar();
}

async function* packBelow(
  folder: string,
  below: string,
  filter: (path: string) => boolean,
): AsyncGenerator<Uint8Array, void, undefined> {
  const names = (await readdir(join(folder, below))).toSorted();
  for (const name of names) {
    const path = below === "" ? name : `${below}/${name}`;
    if (!filter(path)) continue;
    const entry = await entryOf(join(folder, path), path);
    if (entry === undefined) continue;
    if (entry.kind === "file") yield* packFile(join(folder, path), entry);
    else yield encodeHeader(entry);
    if (entry.kind === "folder") yield* packBelow(folder, path, filter);
  }
}

async function entryOf(path: string, name: string): Promise<TarEntry | undefined> {
  const facts = await lstat(path);
  const common = { name, mode: facts.mode & 0o7777, modifiedAtMs: facts.mtimeMs };
  if (facts.isFile()) return { ...common, kind: "file", sizeBytes: facts.size };
  if (facts.isDirectory()) return { ...common, kind: "folder", sizeBytes: 0 };
  if (!facts.isSymbolicLink()) return undefined;
  return { ...common, kind: "symlink", sizeBytes: 0, linkTarget: await readlink(path) };
}

/** A file that changes meanwhile is truncated or padded, so that the archive stays valid. */
async function* packFile(path: string, entry: TarEntry): AsyncGenerator<Uint8Array, void, undefined> {
  yield encodeHeader(entry);
  let left = entry.sizeBytes;
  if (left > 0) {
    for await (const chunk of createReadStream(path, { end: left - 1 }) as AsyncIterable<Uint8Array>) {
      left -= chunk.length;
      yield chunk;
    }
  }
  while (left > 0) {
    const zeros = new Uint8Array(Math.min(left, 64 * 1024));
    left -= zeros.length;
    yield zeros;
  }
  yield padding(entry.sizeBytes);
}
