import { isUtf8 } from "node:buffer";
import { posix } from "node:path";
import type { Readable } from "node:stream";
import { pipeline } from "node:stream/promises";
import { SandboxerError } from "@sandboxer/protocol";
import { extract, type Header } from "tar-stream";
import type { RawFiles, SandboxFiles } from "../../backends/backend.ts";
import { confinedParts, refusedEntry } from "./confined-name.ts";
import { ExtraKeeper, type LostExtras } from "./extra-keeper.ts";
import { type FolderAttributes, FolderTrail, statOrNothing } from "./folder-trail.ts";

/** An option of tar-stream that its types do not know. */
const BYTE_BY_BYTE = { filenameEncoding: "latin1" } as const satisfies object as ExtractOptions;
type ExtractOptions = NonNullable<Parameters<typeof extract>[0]>;

export interface Uploaded {
  readonly files: number;
  readonly bytes: number;
}

export interface Unpacked extends Uploaded, LostExtras {}

/**
 * Unpacks a tar into a folder, which is made if it is missing. Nothing is written outside of it, whatever the tar says:
 * names are relative, no link is followed, and what is neither file nor folder nor link is refused. What came before an
 * entry that is refused stays.
 */
export async function uploadTree(files: SandboxFiles, folder: string, source: Readable): Promise<Uploaded> {
  await files.makeFolder(folder, { parents: true });
  const { files: count, bytes } = await unpackTree(files, folder, source);
  return { files: count, bytes };
}

export interface Owner {
  readonly uid: number;
  readonly gid: number;
}

export interface UnpackOptions {
  /**
   * How the names of these files stand for the bytes in the archive, all of which count: those that cannot be said are
   * refused. The folder itself then gets what the archive says of it, too, and hard links and extended attributes are
   * kept where they can be. Absent: what is no UTF-8 is replaced, and a hard link becomes a file of its own.
   */
  readonly names?: "utf8" | "latin1";
  /** To whom an entry is given, for files that can be given away. */
  readonly owner?: (header: Header) => Owner;
  /** The mode that an entry gets. */
  readonly mode?: (header: Header, mode: number) => number;
}

/** Unpacks a tar into a folder that is there, as {@link uploadTree} does. */
export async function unpackTree(
  files: RawFiles,
  folder: string,
  source: Readable,
  options: UnpackOptions = {},
): Promise<Unpacked> {
  const archive = extract(options.names === undefined ? {} : BYTE_BY_BYTE);
  const feeding = pipeline(source, archive);
  feeding.catch(() => {});
  const tree = new TreeUnpacker(files, folder, options);
  try {
    for await (const entry of archive) {
      const header = options.names === undefined ? entry.header : withNames(entry.header, options.names);
      await tree.add(header, entry as unknown as AsyncIterable<Uint8Array>);
      entry.resume();
    }
    await feeding;
    await tree.finish();
  } catch (error) {
    archive.destroy();
    source.destroy();
    throw error instanceof SandboxerError ? error : damaged(error);
  }
  const { files: count, bytes, extras } = tree;
  return { files: count, bytes, copiedLinks: extras.copiedLinks, lostAttributes: extras.lostAttributes };
}

function damaged(cause: unknown): SandboxerError {
  const why = cause instanceof Error ? cause.message : String(cause);
  return new SandboxerError("bad_request", `The tar archive cannot be read: ${why}`, {
    cause,
    hint: "Send a complete, uncompressed tar archive.",
  });
}

class TreeUnpacker {
  files = 0;
  bytes = 0;
  readonly extras: ExtraKeeper;
  readonly #files: RawFiles;
  readonly #root: string;
  readonly #trail: FolderTrail;
  readonly #options: UnpackOptions;
  #rootAttributes: FolderAttributes | undefined;

  constructor(files: RawFiles, root: string, options: UnpackOptions) {
    this.#files = files;
    this.#root = root;
    this.#options = options;
    this.#trail = new FolderTrail(files, root);
    this.extras = new ExtraKeeper(files, options.names !== undefined);
  }

  async add(header: Header, content: AsyncIterable<Uint8Array>): Promise<void> {
    const parts = confinedParts(header.name);
    const last = parts.at(-1);
    const attributes = this.#attributesOf(header);
    // The folder itself, which is there.
    if (last === undefined) {
      if (this.#options.names !== undefined) this.#rootAttributes = attributes;
      return await this.extras.setAttributes(this.#root, header);
    }
    if (header.type === "directory") {
      return await this.extras.setAttributes(await this.#trail.enter(parts, header.name, attributes), header);
    }
    const path = posix.join(await this.#trail.enter(parts.slice(0, -1), header.name), last);
    switch (header.type) {
      case "file":
      case "contiguous-file":
        await this.#write(path, header, content);
        break;
      case "symlink":
        await this.#clear(path, header.name);
        await this.#files.makeSymlink(header.linkname ?? "", path);
        await this.#give(path, attributes);
        await this.#files.set(path, { modifiedNs: attributes.modifiedNs });
        break;
      case "link":
        await this.#link(path, header);
        break;
      default:
        throw refusedEntry(header.name, `is a ${header.type ?? "entry of an unknown kind"}`);
    }
    this.files += 1;
  }

  async finish(): Promise<void> {
    await this.#trail.leave();
    if (this.#rootAttributes === undefined) return;
    const { mode, modifiedNs } = this.#rootAttributes;
    await this.#files.set(this.#root, { mode, modifiedNs }).catch((thrown: unknown) => {
      // It was there before, and may be somebody else's, who lets the user write in it.
      if (!(thrown instanceof SandboxerError) || thrown.code !== "permission_denied") throw thrown;
    });
  }

  async #write(path: string, header: Header, content: AsyncIterable<Uint8Array>): Promise<void> {
    await this.#clear(path, header.name);
    const attributes = this.#attributesOf(header);
    const { mode, modifiedNs } = attributes;
    // It is written piece by piece, so it has to be writable until its end.
    const holes = this.#options.names !== undefined;
    await naming(header, this.#files.write(path, this.#counted(content), { mode: 0o600, holes }));
    await this.#give(path, attributes);
    await this.extras.setAttributes(path, header);
    await this.#files.set(path, { mode, modifiedNs });
  }

  async #link(path: string, header: Header): Promise<void> {
    const existing = await this.#linked(header);
    await this.#clear(path, header.name);
    if (!(await this.extras.makeHardLink(existing, path))) {
      return await this.#write(path, header, this.#files.read(existing));
    }
    // In runsc of 2024 a file belongs to whoever has linked it last.
    const attributes = this.#attributesOf(header);
    await this.#give(path, attributes);
    await this.#files.set(path, { mode: attributes.mode, modifiedNs: attributes.modifiedNs });
  }

  /** Before the mode: with another owner a file loses the right to act as the one before. */
  async #give(path: string, { owner }: FolderAttributes): Promise<void> {
    if (owner !== undefined) await this.#files.set(path, { owner });
  }

  #attributesOf(header: Header): FolderAttributes {
    const { mode, modifiedNs } = attributesOf(header);
    const owner = this.#options.owner?.(header);
    return {
      mode: this.#options.mode?.(header, mode) ?? mode,
      modifiedNs,
      ...(owner === undefined ? {} : { owner }),
    };
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
    if (found?.kind === "folder") throw refusedEntry(entryName, "has the name of an existing folder");
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
        throw refusedEntry(name, "is a hard link to a path outside the archive");
      }
    }
    if (parts.length === 0) throw refusedEntry(name, "is a hard link without a target");
    return path;
  }
}

/** What there is no room for is named: nothing else says which file it was. */
async function naming({ name }: Header, writing: Promise<void>): Promise<void> {
  await writing.catch((thrown: unknown) => {
    if (!(thrown instanceof SandboxerError) || !["limit_reached", "no_space"].includes(thrown.code)) throw thrown;
    const { code, message, hint, details } = thrown;
    throw new SandboxerError(code, `${name}: ${message}`, { cause: thrown, hint, details });
  });
}

/** Headers that were read byte by byte; what came in a pax record was UTF-8 in any case. */
function withNames(header: Header, names: "utf8" | "latin1"): Header {
  const pax = header.pax as Readonly<Record<string, string>> | null | undefined;
  const toBytes = (text: string, isPax: boolean): Buffer => Buffer.from(text, isPax ? "utf8" : "latin1");
  const said = (bytes: Buffer): string => (names === "latin1" ? bytes.toString("latin1") : strictly(bytes));
  const name = said(toBytes(header.name, pax?.["path"] !== undefined));
  const { linkname } = header;
  return { ...header, name, linkname: linkname && said(toBytes(linkname, pax?.["linkpath"] !== undefined)) };
}

function strictly(bytes: Buffer): string {
  if (isUtf8(bytes)) return bytes.toString("utf8");
  throw new SandboxerError("not_supported", `The name ${JSON.stringify(bytes.toString("latin1"))} is not UTF-8.`, {
    hint: "The backend supports only UTF-8 names. Rename the file in the source sandbox, or choose another backend.",
  });
}

function attributesOf({ type, mode, mtime }: Header): FolderAttributes {
  const fallback = type === "directory" ? 0o755 : 0o644;
  return { mode: (mode ?? fallback) & 0o7777, modifiedNs: BigInt(mtime?.getTime() ?? 0) * 1_000_000n };
}
