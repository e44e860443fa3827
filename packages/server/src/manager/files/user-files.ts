import { posix } from "node:path";
import { Readable } from "node:stream";
import { SandboxerError } from "@sandboxer/protocol";
import type { FileEntry, FileRange, FolderWatch, SandboxAccount } from "../../backends/backend.ts";
import { describe, describePath, resolveLinks, type DescribedFile } from "./described-file.ts";
import { statOrNothing } from "./folder-trail.ts";
import type { UserSpace } from "./user-space.ts";
import { watchTree, type TreeWatcher } from "./watch-tree.ts";

const MAX_LISTED = 100_000;
/** Entries are described this many at a time, because each may need requests of its own. */
const DESCRIBED_AT_ONCE = 64;

export interface ReadableFile {
  readonly sizeBytes: number;
  /** The sandbox is in use until the stream ends. It fails if the file has become shorter than the range. */
  open(range: FileRange): Readable;
}

/** Extended attributes of a file with a prefix, which replace all others with that prefix. */
export interface AttributeSet {
  readonly prefix: string;
  /** Names without `user.` and without the prefix. */
  readonly values: ReadonlyMap<string, string>;
}

/** The files of a sandbox for one of its users. Paths are absolute; links are followed. */
export class UserFiles {
  readonly #space: UserSpace;
  /** The sandbox counts as in use until the returned function is called. */
  readonly #hold: () => () => void;

  constructor(space: UserSpace, hold: () => () => void) {
    this.#space = space;
    this.#hold = hold;
  }

  get account(): SandboxAccount {
    return this.#space.account;
  }

  stat(path: string): Promise<DescribedFile> {
    return this.#held(() => describePath(this.#space, path));
  }

  /** Undefined: there is nothing at the path. */
  async find(path: string): Promise<DescribedFile | undefined> {
    try {
      return await this.stat(path);
    } catch (error) {
      if (error instanceof SandboxerError && error.code === "file_not_found") return undefined;
      throw error;
    }
  }

  /** A folder to this depth, depth first and by name; links to folders are not entered. */
  list(path: string, depth: number): Promise<DescribedFile[]> {
    return this.#held(async () => {
      const found: { readonly path: string; readonly entry: FileEntry }[] = [];
      const enter = async (folder: string, levels: number): Promise<void> => {
        const entries = await this.#space.files.list(folder);
        for (const entry of entries.toSorted(byName)) {
          const below = posix.join(folder, entry.name);
          found.push({ path: below, entry });
          if (found.length > MAX_LISTED) throw tooManyIn(path);
          if (entry.kind === "folder" && levels > 1) await enter(below, levels - 1);
        }
      };
      await enter(path, depth);
      const described: DescribedFile[] = [];
      while (described.length < found.length) {
        const batch = found.slice(described.length, described.length + DESCRIBED_AT_ONCE);
        described.push(...(await Promise.all(batch.map(({ path: at, entry }) => describe(this.#space, at, entry)))));
      }
      return described;
    });
  }

  /** With the folders above it. */
  makeFolder(path: string): Promise<DescribedFile> {
    return this.#held(async () => {
      await this.#space.makeFolders(path);
      return describePath(this.#space, path);
    });
  }

  /** Creates the folders above the destination. */
  move(from: string, to: string): Promise<DescribedFile> {
    return this.#held(async () => {
      const { files } = this.#space;
      await files.stat(from);
      await this.#space.makeFolders(posix.dirname(to));
      await files.rename(from, to);
      return describePath(this.#space, to);
    });
  }

  /** With everything below it. A missing file is no error. */
  remove(path: string): Promise<void> {
    return this.#held(async () => {
      try {
        await this.#space.files.remove(path, { recursive: true });
      } catch (error) {
        if (!(error instanceof SandboxerError) || error.code !== "file_not_found") throw error;
      }
    });
  }

  read(path: string): Promise<ReadableFile> {
    return this.#held(async () => {
      const { files } = this.#space;
      const { kind, sizeBytes } = await describePath(this.#space, path);
      if (kind === "folder") throw isFolder(path);
      if (kind !== "file") throw new SandboxerError("bad_request", `${path} is not a regular file.`);
      const open = (range: FileRange): Readable => {
        const content = files.read(path, range);
        const stream = Readable.from(wholeRange(content, path, range.length), { objectMode: false });
        return stream.once("close", this.#hold());
      };
      return { sizeBytes, open };
    });
  }

  /** Creates the folders above it. An existing file keeps its mode and its owner. */
  write(path: string, content: AsyncIterable<Uint8Array>, attributes: AttributeSet): Promise<DescribedFile> {
    return this.#held(async () => {
      const space = this.#space;
      const existing = await statOrNothing(space.files, path);
      if (existing?.kind === "folder") throw isFolder(path);
      if (existing === undefined) await space.makeFolders(posix.dirname(path));
      await space.files.write(path, content, { mode: 0o644 });
      if (existing === undefined) await space.own(path);
      await this.#replaceAttributes(await resolveLinks(space.files, path), attributes);
      return describePath(space, path);
    });
  }

  /** `onEnd` is called once, unless the watch is closed or could not begin. */
  watch(path: string, recursive: boolean, watcher: TreeWatcher): Promise<FolderWatch> {
    return this.#held(() => watchTree(this.#space.files, path, recursive, watcher));
  }

  async #replaceAttributes(path: string, { prefix, values }: AttributeSet): Promise<void> {
    const { root } = this.#space;
    if (root?.attributes === undefined || root.setAttribute === undefined) {
      if (values.size === 0) return;
      throw new SandboxerError("not_supported", "The backend of this sandbox keeps no attributes of files.");
    }
    const own = `user.${prefix}`;
    const present = await root.attributes(path).catch((): ReadonlyMap<string, Uint8Array> => new Map());
    for (const name of present.keys()) {
      if (name.startsWith(own) && !values.has(name.slice(own.length))) await root.removeAttribute?.(path, name);
    }
    for (const [name, value] of values) await root.setAttribute(path, own + name, Buffer.from(value));
  }

  async #held<Result>(work: () => Promise<Result>): Promise<Result> {
    const release = this.#hold();
    try {
      return await work();
    } finally {
      release();
    }
  }
}

/** A client that got a length must not wait for bytes that never come. */
async function* wholeRange(
  content: AsyncIterable<Uint8Array>,
  path: string,
  length = 0,
): AsyncGenerator<Uint8Array, void, undefined> {
  let bytes = 0;
  for await (const chunk of content) {
    bytes += chunk.length;
    yield chunk;
  }
  if (bytes < length) throw new SandboxerError("wrong_state", `${path} became shorter while it was read.`);
}

function byName(left: FileEntry, right: FileEntry): number {
  return left.name < right.name ? -1 : left.name > right.name ? 1 : 0;
}

function isFolder(path: string): SandboxerError {
  return new SandboxerError("bad_request", `${path} is a folder.`);
}

function tooManyIn(path: string): SandboxerError {
  return new SandboxerError("limit_reached", `More than ${MAX_LISTED} files are in ${path}.`, {
    hint: "List it with less depth.",
  });
}
