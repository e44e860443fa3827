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
 * Unpacks a tar archive into a folder, which is created if missing. Nothing is written outside the folder: names must
 * be relative, links are not followed, and entries other than files, folders and links are refused. Entries before a
 * refused one stay.
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
   * How file names map to bytes in the archive; names that cannot be mapped are refused. With it, the folder itself
   * also gets the archive's attributes, and hard links and extended attributes are kept where possible. Absent: invalid
   * UTF-8 is replaced, and a hard link becomes a separate file.
   */
  readonly names?: "utf8" | "latin1";
  /** The owner of an entry, for file systems that support owners. */
  readonly owner?: (header: Header) => Owner;
  /** The mode that an entry gets. */
  readonly mode?: (header: Header, mode: number) => number;
}

/** Unpacks a tar archive into an existing folder, as {@link uploadTree} does. */
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
    // The folder itself, which exists.
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
      // The file existed before and may belong to another user who lets this one write to it.
      if (!(thrown instanceof SandboxerError) || thrown.code !== "permission_denied") throw thrown;
    });
  }

  async #write(path: string, header: Header, content: AsyncIterable<Uint8Array>): Promise<void> {
    await this.#clear(path, header.name);
    const attributes = this.#attributesOf(header);
    const { mode, modifiedNs } = attributes;
    // The file is written piece by piece, so it must be writable until the end.
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
    // In runsc of 2024 a file belongs to the user who linked it last.
    const attributes = this.#attributesOf(header);
    await this.#give(path, attributes);
    await this.#files.set(path, { mode: attributes.mode, modifiedNs: attributes.modifiedNs });
  }

  /** Set before the mode: changing the owner clears the setuid bits. */
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

  /** Removes whatever has the name, because a link would be written through. A folder stays. */
  async #clear(path: string, entryName: string): Promise<void> {
    const found = await statOrNothing(this.#files, path);
    if (found?.kind === "folder") throw refusedEntry(entryName, "has the name of an existing folder");
    if (found !== undefined) await this.#files.remove(path);
  }

  /** The file in the tree that a hard link points to, reached without following a link. */
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

/** Adds the file to an out-of-space error, which does not name it. */
async function naming({ name }: Header, writing: Promise<void>): Promise<void> {
  await writing.catch((thrown: unknown) => {
    if (!(thrown instanceof SandboxerError) || !["limit_reached", "no_space"].includes(thrown.code)) throw thrown;
    const { code, message, hint, details } = thrown;
    throw new SandboxerError(code, `${name}: ${message}`, { cause: thrown, hint, details });
  });
}

/** Headers were read byte by byte; pax records were UTF-8 in any case. */
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
