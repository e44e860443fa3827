import { posix } from "node:path";
import { SandboxerError } from "@sandboxer/protocol";
import type { FileEntry, RawFiles } from "../../../backends/backend.ts";
import { tarEnd, tarHeader, tarPadding } from "../../../support/tar-header.ts";
import { type Attributes, encodeAttributes } from "../../files/tar-attributes.ts";
import type { WorkspaceTally } from "./workspace-archive.ts";

const ZEROS = Buffer.alloc(64 * 1024);
/** The path limit of the system inside: nothing below a longer path can be requested. */
const MAX_PATH_CHARACTERS = 4096;
/** Limit for names and other metadata, besides content: half a million files, and more if they are small. */
const HEAD_BYTES = 256 * 1024 ** 2;
/** The list comes from inside, where someone may have replaced the programs that produce it. */
const NO_NAME = /^\.{0,2}$|[/\0]/;

export interface PackSource {
  readonly files: RawFiles;
  /** How file names map to bytes. */
  readonly names: "utf8" | "latin1";
  readonly folder: string;
  /** A sparse file is larger than the space it uses inside. */
  readonly maxBytes: number;
}

/** The state of a packing in progress. */
interface Packing extends PackSource {
  readonly tally: WorkspaceTally;
  readonly linked: LinkedFiles;
  /** Whether the backend can list extended attributes. */
  knowsAttributes: boolean;
  /** Everything except content. */
  headBytes: number;
}

interface Level {
  readonly path: string;
  /** The name in the archive. */
  readonly name: string;
  readonly entries: FileEntry[];
}

/**
 * Streams the workspace as a tar archive. An unreadable file ends it with an error, because a move would lose the file.
 * Files that disappear before their turn are left out.
 */
export async function* packWorkspace(given: PackSource, tally: WorkspaceTally): AsyncGenerator<Uint8Array> {
  const { files, folder } = given;
  const source: Packing = { ...given, tally, linked: new LinkedFiles(), knowsAttributes: true, headBytes: 0 };
  const root = await files.stat(folder);
  if (root.kind !== "folder") throw new SandboxerError("bad_request", `${folder} is not a folder.`);
  if (root.links !== undefined) tally.hardLinks = 0;
  yield header(source, "./", root, await attributesOf(source, folder));
  const levels: Level[] = [{ path: folder, name: "./", entries: await listed(files, folder) }];
  for (let level = levels.at(-1); level !== undefined; level = levels.at(-1)) {
    const entry = level.entries.pop();
    if (entry === undefined) {
      levels.pop();
      continue;
    }
    const path = pathOf(level, entry);
    const name = level.name + entry.name;
    if (entry.kind === "folder") {
      const below = await unlessGone(source, path, () => listed(files, path));
      if (below === undefined) continue;
      tally.folders += 1;
      yield header(source, `${name}/`, entry, await attributesOf(source, path));
      levels.push({ path, name: `${name}/`, entries: below });
    } else if (entry.kind === "symlink") {
      tally.links += 1;
      yield header(source, name, entry);
    } else if (entry.kind === "file") {
      const first = source.linked.find(entry);
      if (first === undefined) yield* packFile(source, path, name, entry);
      else yield hardLink(source, name, entry, first);
    } else tally.leftOut += 1;
  }
  yield tarEnd();
}

function pathOf({ path }: Level, { name }: FileEntry): string {
  if (NO_NAME.test(name)) {
    const text = `The sandbox reports that ${path} contains ${JSON.stringify(name.slice(0, 200))}, which is not a valid file name.`;
    throw new SandboxerError("sandbox_failed", text, {
      hint: "Do not trust the contents of this sandbox.",
      details: { path },
    });
  }
  const below = posix.join(path, name);
  if (below.length <= MAX_PATH_CHARACTERS) return below;
  throw new SandboxerError("too_large", `The path ${below.slice(0, 200)}… is too long to be read.`, {
    hint: "Remove deeply nested folders, or move them up.",
  });
}

/** In reverse order, because they are taken from the end. */
async function listed(files: RawFiles, path: string): Promise<FileEntry[]> {
  return (await files.list(path)).toSorted((a, b) => (a.name < b.name ? 1 : -1));
}

/** The header gives the size before the content, so a file that changed meanwhile is truncated or padded with zeros. */
async function* packFile(source: Packing, path: string, name: string, entry: FileEntry): AsyncGenerator<Uint8Array> {
  const { tally } = source;
  const { sizeBytes } = entry;
  if (tally.bytes + sizeBytes > source.maxBytes) {
    throw new SandboxerError("too_large", `The workspace is larger than ${source.maxBytes} bytes (${path}).`, {
      hint: "Remove files that you do not need; a sparse file counts with its full size.",
    });
  }
  const content = source.files.read(path, { length: sizeBytes })[Symbol.asyncIterator]();
  let left = sizeBytes;
  try {
    const first = sizeBytes === 0 ? undefined : await unlessGone(source, path, () => content.next());
    if (first === undefined && sizeBytes > 0) return;
    tally.files += 1;
    tally.bytes += sizeBytes;
    source.linked.add(entry, name);
    yield header(source, name, entry, await attributesOf(source, path));
    for (let next = first; next !== undefined && next.done !== true && left > 0; next = await content.next()) {
      const data = next.value.subarray(0, left);
      left -= data.length;
      yield data;
    }
  } finally {
    // Also if the packing was cancelled: some backends have a process for each file that is read.
    await content.return?.();
  }
  for (; left > 0; left -= Math.min(left, ZEROS.length)) yield ZEROS.subarray(0, Math.min(left, ZEROS.length));
  yield tarPadding(sizeBytes);
}

/** Another name of a file that is already in the archive with its content and attributes. */
function hardLink(source: Packing, name: string, entry: FileEntry, first: string): Buffer {
  source.tally.files += 1;
  source.tally.hardLinks = (source.tally.hardLinks ?? 0) + 1;
  const { names } = source;
  const { mode, uid, gid, modifiedMs } = entry;
  const [own, linkTarget] = [Buffer.from(name, names), Buffer.from(first, names)];
  return counted(
    source,
    tarHeader({ kind: "hardlink", name: own, linkTarget, mode, uid, gid, sizeBytes: 0, modifiedMs }),
  );
}

async function attributesOf(source: Packing, path: string): Promise<Attributes | undefined> {
  const { files, tally } = source;
  if (files.attributes === undefined || !source.knowsAttributes) return undefined;
  try {
    const found = await files.attributes(path);
    tally.attributes = (tally.attributes ?? 0) + found.size;
    return found;
  } catch (error) {
    const code = error instanceof SandboxerError ? error.code : undefined;
    if (code === "too_large") tally.attributesLost += 1;
    // The agent of a sandbox that was saved long ago cannot do this.
    else if (code === "not_supported") source.knowsAttributes = false;
    else if (code !== "file_not_found") throw error;
    return undefined;
  }
}

function header(source: Packing, name: string, entry: FileEntry, attributes?: Attributes): Buffer {
  const { names } = source;
  const { kind, mode, uid, gid, modifiedMs, linkTarget } = entry;
  const head = tarHeader({
    kind: kind === "other" ? "file" : kind,
    name: Buffer.from(name, names),
    ...(linkTarget === undefined ? {} : { linkTarget: Buffer.from(linkTarget, names) }),
    mode,
    uid,
    gid,
    sizeBytes: kind === "file" ? entry.sizeBytes : 0,
    modifiedMs,
    pax: attributes === undefined || attributes.size === 0 ? undefined : encodeAttributes(attributes),
  });
  return counted(source, head);
}

function counted(source: Packing, head: Buffer): Buffer {
  source.headBytes += head.length;
  if (source.headBytes <= Math.max(source.maxBytes, HEAD_BYTES)) return head;
  throw new SandboxerError("too_large", "The workspace has more files than can be captured.", {
    hint: "Remove files that you do not need.",
  });
}

async function unlessGone<Result>(
  { names }: PackSource,
  path: string,
  read: () => Promise<Result>,
): Promise<Result | undefined> {
  try {
    return await read();
  } catch (error) {
    const code = error instanceof SandboxerError ? error.code : undefined;
    if (code === "permission_denied") throw unreadable(path, error);
    if (code !== "file_not_found") throw error;
    // It may exist under the bytes that this character stands for.
    if (names === "utf8" && path.includes("\uFFFD")) throw unnameable(path, error);
    return undefined;
  }
}

function unreadable(path: string, cause: unknown): SandboxerError {
  return new SandboxerError(
    "permission_denied",
    `${path} cannot be read, so the workspace cannot be captured completely.`,
    {
      cause,
      hint: "Let the sandbox's user read it (chmod u+r), or remove it.",
      details: { path },
    },
  );
}

function unnameable(path: string, cause: unknown): SandboxerError {
  return new SandboxerError("not_supported", `The name of ${JSON.stringify(path)} is not UTF-8.`, {
    cause,
    hint: "This backend cannot read such names. Rename or remove the file.",
    details: { path },
  });
}

interface Packed {
  /** The name in the archive. */
  readonly name: string;
  readonly facts: string;
  /** The number of names still to come. */
  left: number;
}

/** Files with several names of which one was packed, so that the others can refer to it. */
class LinkedFiles {
  readonly #packed = new Map<string, Packed>();

  add(entry: FileEntry, name: string): void {
    const key = keyOf(entry);
    if (key !== undefined) this.#packed.set(key, { name, facts: factsOf(entry), left: (entry.links ?? 1) - 1 });
  }

  /** The archive name of the file that an entry is another name of. A file that changed since is a new file. */
  find(entry: FileEntry): string | undefined {
    const key = keyOf(entry);
    const packed = key === undefined ? undefined : this.#packed.get(key);
    if (key === undefined || packed === undefined || packed.facts !== factsOf(entry)) return undefined;
    packed.left -= 1;
    if (packed.left <= 0) this.#packed.delete(key);
    return packed.name;
  }
}

function keyOf({ device, inode, links = 1 }: FileEntry): string | undefined {
  return device === undefined || inode === undefined || links < 2 ? undefined : `${device}:${inode}`;
}

function factsOf({ sizeBytes, modifiedMs, mode, uid, gid }: FileEntry): string {
  return [sizeBytes, modifiedMs, mode, uid, gid].join(" ");
}
