import { posix } from "node:path";
import { Readable } from "node:stream";
import { SandboxerError, type FileEntryRecord } from "@sandboxer/protocol";
import type { FileEntry, FileRange, SandboxFiles } from "../../backends/backend.ts";
import { live } from "../live-sandbox.ts";
import type { FilesContext } from "../room-contexts.ts";
import { Room } from "../room.ts";
import { runningSandbox } from "../running.ts";
import type { Sandbox } from "../sandbox.ts";
import { downloadTree, type DownloadOptions } from "./download-tree.ts";
import { uploadTree, type Uploaded } from "./upload-tree.ts";
import { UserFiles } from "./user-files.ts";
import { UserSpace } from "./user-space.ts";

/** The sandbox whose files a call is about. */
export interface FilesOf {
  readonly sandboxId: string;
  readonly epoch: number | undefined;
  /** Aborts when the caller disconnects. */
  readonly signal: AbortSignal;
}

/** File operations on sandboxes that run here. A sandbox counts as in use until the call or its stream ends. */
export class FileVerbs extends Room<FilesContext> {
  /** Fails before the first byte if the file cannot be read. */
  read(of: FilesOf, path: string, range: FileRange): Promise<Readable> {
    return this.#stream(of, (files) => begun(files.read(path, range)));
  }

  /** The mode also applies to a file that existed before. */
  write(
    of: FilesOf,
    path: string,
    content: AsyncIterable<Uint8Array>,
    { mode, parents }: { readonly mode?: number | undefined; readonly parents?: boolean | undefined },
  ): Promise<void> {
    return this.#with(of, async (files) => {
      if (parents === true) await files.makeFolder(posix.dirname(path), { parents: true });
      await files.write(path, content, mode === undefined ? {} : { mode });
      if (mode !== undefined) await files.set(path, { mode });
    });
  }

  remove(of: FilesOf, path: string, recursive: boolean): Promise<void> {
    return this.#with(of, (files) => files.remove(path, { recursive }));
  }

  stat(of: FilesOf, path: string): Promise<FileEntryRecord> {
    return this.#with(of, async (files) => entryRecord(await files.stat(path)));
  }

  list(of: FilesOf, path: string): Promise<FileEntryRecord[]> {
    return this.#with(of, async (files) => {
      const entries = (await files.list(path)).map(entryRecord);
      return entries.toSorted((left, right) => (left.name < right.name ? -1 : left.name > right.name ? 1 : 0));
    });
  }

  makeFolder(of: FilesOf, path: string, parents: boolean): Promise<void> {
    return this.#with(of, (files) => files.makeFolder(path, { parents }));
  }

  rename(of: FilesOf, from: string, to: string): Promise<void> {
    return this.#with(of, (files) => files.rename(from, to));
  }

  downloadTree(of: FilesOf, path: string, options: DownloadOptions): Promise<Readable> {
    return this.#stream(of, (files) => downloadTree(files, path, options));
  }

  uploadTree(of: FilesOf, path: string, tar: AsyncIterable<Uint8Array>): Promise<Uploaded> {
    return this.#with(of, (files) => uploadTree(files, path, Readable.from(tar)));
  }

  /** The files for one of the sandbox's users; absent: its own. Throws {@link UnknownUserError}. */
  async ofUser(sandbox: Sandbox, user: string | undefined): Promise<UserFiles> {
    const { context } = this;
    const running = live(sandbox);
    this.#checkCapable(running.facts.backend);
    const space = await UserSpace.of(running.handle, user);
    return new UserFiles(space, () => running.hold(() => context.nowMs, "a file transfer"));
  }

  async #with<Result>(of: FilesOf, work: (files: SandboxFiles) => Promise<Result>): Promise<Result> {
    const { files, release } = await this.#hold(of);
    try {
      return await work(files);
    } finally {
      release();
    }
  }

  async #stream(of: FilesOf, open: (files: SandboxFiles) => Promise<Readable>): Promise<Readable> {
    const { files, release } = await this.#hold(of);
    try {
      const stream = await open(files);
      return stream.once("close", release);
    } catch (error) {
      release();
      throw error;
    }
  }

  async #hold({ sandboxId, epoch, signal }: FilesOf): Promise<{ files: SandboxFiles; release: () => void }> {
    const { context } = this;
    const sandbox = await runningSandbox(context, sandboxId, epoch, { signal });
    this.#checkCapable(sandbox.facts.backend);
    return { files: sandbox.handle.files, release: sandbox.hold(() => context.nowMs, "a file transfer") };
  }

  #checkCapable(backend: string): void {
    if (this.context.backend(backend).capabilities.files) return;
    throw new SandboxerError("not_supported", `The backend ${backend} does not support files.`);
  }
}

/** Reads up to the first bytes, so that an unreadable file is an error of the call and not a broken response. */
async function begun(content: AsyncIterable<Uint8Array>): Promise<Readable> {
  const iterator = content[Symbol.asyncIterator]();
  const first = await iterator.next();
  const all = async function* (): AsyncGenerator<Uint8Array> {
    for (let next = first; next.done !== true; next = await iterator.next()) yield next.value;
  };
  return Readable.from(all(), { objectMode: false });
}

function entryRecord({ name, kind, mode, uid, gid, ...entry }: FileEntry): FileEntryRecord {
  return {
    name,
    kind,
    mode,
    uid,
    gid,
    size_bytes: entry.sizeBytes,
    modified_at: modifiedAt(entry.modifiedMs),
    link_target: entry.linkTarget ?? null,
  };
}

/** A time inside the sandbox may be any number: an invalid date becomes the epoch. */
function modifiedAt(ms: number): string {
  return new Date(Math.abs(ms) <= 8.64e15 ? ms : 0).toISOString();
}
