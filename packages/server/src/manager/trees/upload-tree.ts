import { posix } from "node:path";
import type { Readable } from "node:stream";
import { pipeline } from "node:stream/promises";
import { SandboxerError } from "@sandboxer/protocol";
import { extract, type Header } from "tar-stream";
import type { SandboxFiles } from "../../backends/backend.ts";
import { confinedParts, refusedEntry } from "./confined-name.ts";
import { type FolderAttributes, FolderTrail, statOrNothing } from "./folder-trail.ts";

export interface Uploaded {
  readonly files: number;
  readonly bytes: number;
}

/**
 * Unpacks a tar into a folder, which is made if it is missing. Nothing is written outside of it, whatever the tar says:
 * names are relative, no link is followed, and what is neither file nor folder nor link is refused. What came before an
 * entry that is refused stays.
 */
export async function uploadTree(files: SandboxFiles, folder: string, source: Readable): Promise<Uploaded> {
  await files.makeFolder(folder, { parents: true });
  const archive = extract();
  const feeding = pipeline(source, archive);
  feeding.catch(() => {});
  const tree = new TreeUnpacker(files, folder);
  try {
    for await (const entry of archive) {
      await tree.add(entry.header, entry as unknown as AsyncIterable<Uint8Array>);
      entry.resume();
    }
    await feeding;
    await tree.finish();
  } catch (error) {
    archive.destroy();
    source.destroy();
    throw error instanceof SandboxerError ? error : damaged(error);
  }
  return { files: tree.files, bytes: tree.bytes };
}

function damaged(cause: unknown): SandboxerError {
  const why = cause instanceof Error ? cause.message : String(cause);
  return new SandboxerError("bad_request", `The tar cannot be read: ${why}`, {
    cause,
    hint: "Send an uncompressed tar, to its end.",
  });
}

class TreeUnpacker {
  files = 0;
  bytes = 0;
  readonly #files: SandboxFiles;
  readonly #root: string;
  readonly #trail: FolderTrail;

  constructor(files: SandboxFiles, root: string) {
    this.#files = files;
    this.#root = root;
    this.#trail = new FolderTrail(files, root);
  }

  async add(header: Header, content: AsyncIterable<Uint8Array>): Promise<void> {
    const parts = confinedParts(header.name);
    const last = parts.at(-1);
    // The folder itself, which is there.
    if (last === undefined) return;
    const attributes = attributesOf(header);
    if (header.type === "directory") return void (await this.#trail.enter(parts, header.name, attributes));
    const path = posix.join(await this.#trail.enter(parts.slice(0, -1), header.name), last);
    switch (header.type) {
      case "file":
      case "contiguous-file":
        await this.#write(path, header, content);
        break;
      case "symlink":
        await this.#clear(path, header.name);
        await this.#files.makeSymlink(header.linkname ?? "", path);
        await this.#files.set(path, { modifiedNs: attributes.modifiedNs });
        break;
      case "link":
        await this.#write(path, header, this.#files.read(await this.#linked(header)));
        break;
      default:
        throw refusedEntry(header.name, `is a ${header.type ?? "thing of an unknown kind"}`);
    }
    this.files += 1;
  }

  finish(): Promise<void> {
    return this.#trail.leave();
  }

  async #write(path: string, header: Header, content: AsyncIterable<Uint8Array>): Promise<void> {
    await this.#clear(path, header.name);
    const { mode, modifiedNs } = attributesOf(header);
    // It is written piece by piece, so it has to be writable until its end.
    await this.#files.write(path, this.#counted(content), { mode: 0o600 });
    await this.#files.set(path, { mode, modifiedNs });
  }

  async *#counted(content: AsyncIterable<Uint8Array>): AsyncGenerator<Uint8Array> {
    for await (const data of content) {
      this.bytes += data.length;
      yield data;
    }
  }

  /** Whatever has the name goes: a link would be written through. A folder stays. */
  async #clear(path: string, entryName: string): Promise<void> {
    const found = await statOrNothing(this.#files, path);
    if (found?.kind === "folder") throw refusedEntry(entryName, "has the name of a folder that is there");
    if (found !== undefined) await this.#files.remove(path);
  }

  /** The file of the tree that a hard link stands for, reached without following a link. */
  async #linked({ name, linkname }: Header): Promise<string> {
    let path = this.#root;
    const parts = confinedParts(linkname ?? "");
    for (const [index, part] of parts.entries()) {
      path = posix.join(path, part);
      const wanted = index === parts.length - 1 ? "file" : "folder";
      if ((await statOrNothing(this.#files, path))?.kind !== wanted) {
        throw refusedEntry(name, "is a hard link to no file of the tree");
      }
    }
    if (parts.length === 0) throw refusedEntry(name, "is a hard link to nothing");
    return path;
  }
}

function attributesOf({ type, mode, mtime }: Header): FolderAttributes {
  const fallback = type === "directory" ? 0o755 : 0o644;
  return { mode: (mode ?? fallback) & 0o7777, modifiedNs: BigInt(mtime?.getTime() ?? 0) * 1_000_000n };
}
