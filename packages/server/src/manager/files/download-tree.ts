import { posix } from "node:path";
import { PassThrough, type Readable } from "node:stream";
import { pipeline } from "node:stream/promises";
import { SandboxerError } from "@sandboxer/protocol";
import { pack, type Pack } from "tar-stream";
import type { FileEntry, SandboxFiles } from "../../backends/backend.ts";

const BUFFER_BYTES = 256 * 1024;
const ZEROS = Buffer.alloc(64 * 1024);

export interface DownloadOptions {
  /** Skip unreadable files instead of failing. */
  readonly skipUnreadable: boolean;
}

/**
 * Streams a folder and its contents as a tar archive; names are relative to the folder. A file, or a link that does not
 * lead to a folder, is the only entry. The stream ends with an error when something cannot be read.
 */
export async function downloadTree(files: SandboxFiles, path: string, options: DownloadOptions): Promise<Readable> {
  const root = await files.stat(path);
  const folder = root.kind === "folder" || (root.kind === "symlink" && (await leadsToFolder(files, path)));
  if (!folder && root.kind === "other") throw new SandboxerError("bad_request", `${path} is not a file or folder.`);
  // If the first entry cannot be read, the error is known before the response begins.
  const entries = folder ? await files.list(path) : [];
  const writer = new TreeWriter(files, options);
  void writer.run(async () => {
    if (folder) await writer.addAll(path, "", entries);
    else await writer.add(path, posix.basename(path), root);
  });
  return writer.bytes;
}

async function leadsToFolder(files: SandboxFiles, path: string): Promise<boolean> {
  return files.list(path).then(
    () => true,
    () => false,
  );
}

class TreeWriter {
  readonly bytes = new PassThrough({ highWaterMark: BUFFER_BYTES });
  readonly #files: SandboxFiles;
  readonly #options: DownloadOptions;
  readonly #archive: Pack = pack();
  /** Rejects when the client disconnects. */
  readonly #sending: Promise<void>;

  constructor(files: SandboxFiles, options: DownloadOptions) {
    this.#files = files;
    this.#options = options;
    this.#sending = pipeline(this.#archive, this.bytes);
    this.#sending.catch(() => {});
  }

  async run(work: () => Promise<void>): Promise<void> {
    try {
      await work();
      this.#archive.finalize();
    } catch (error) {
      this.bytes.destroy(error as Error);
    }
  }

  async addAll(folder: string, prefix: string, entries: readonly FileEntry[]): Promise<void> {
    for (const entry of entries.toSorted(byName)) {
      await this.add(posix.join(folder, entry.name), prefix + entry.name, entry);
    }
  }

  async add(path: string, name: string, entry: FileEntry): Promise<void> {
    await this.#room();
    const header = { name, mode: entry.mode & 0o7777, mtime: new Date(entry.modifiedMs) };
    if (entry.kind === "folder") {
      const below = await this.#unlessUnreadable(() => this.#files.list(path));
      if (below === undefined) return;
      this.#entry({ ...header, name: `${name}/`, type: "directory" });
      await this.addAll(path, `${name}/`, below);
    } else if (entry.kind === "symlink") {
      this.#entry({ ...header, type: "symlink", linkname: entry.linkTarget ?? "" });
    } else if (entry.kind === "file") {
      await this.#addFile(path, header, entry.sizeBytes);
    }
  }

  #entry(header: Parameters<Pack["entry"]>[0]): ReturnType<Pack["entry"]> {
    const sink = this.#archive.entry(header);
    // Ending the archive also ends the entry that is being written.
    sink.on("error", () => {});
    return sink;
  }

  /**
   * The header gives the size before the content, so a file that changed meanwhile is truncated or padded with zeros.
   */
  async #addFile(path: string, header: { name: string; mode: number; mtime: Date }, sizeBytes: number): Promise<void> {
    const content = this.#files.read(path, { length: sizeBytes })[Symbol.asyncIterator]();
    const first =
      sizeBytes === 0 ? { done: true as const, value: undefined } : await this.#unlessUnreadable(() => content.next());
    if (first === undefined) return;
    const sink = this.#entry({ ...header, type: "file", size: sizeBytes });
    const write = async (data: Uint8Array): Promise<void> => {
      const drained = new Promise<void>((resolve) => sink.once("drain", () => resolve()));
      if (!sink.write(Buffer.from(data.buffer, data.byteOffset, data.byteLength))) {
        await Promise.race([drained, this.#sending]);
      }
    };
    let left = sizeBytes;
    try {
      for (let next: IteratorResult<Uint8Array> = first; next.done !== true && left > 0; next = await content.next()) {
        const data = next.value.subarray(0, left);
        left -= data.length;
        await write(data);
      }
    } finally {
      // Also when the client disconnects: some backends have a process for each file that is read.
      await content.return?.();
    }
    for (; left > 0; left -= Math.min(left, ZEROS.length)) await write(ZEROS.subarray(0, Math.min(left, ZEROS.length)));
    sink.end(undefined);
  }

  /** Undefined for an entry that no longer exists, and for an unreadable one if those are skipped. */
  async #unlessUnreadable<Result>(read: () => Promise<Result>): Promise<Result | undefined> {
    try {
      return await read();
    } catch (error) {
      const code = error instanceof SandboxerError ? error.code : undefined;
      if (code === "file_not_found") return undefined;
      if (code === "permission_denied" && this.#options.skipUnreadable) return undefined;
      throw error;
    }
  }

  /** Entries without content would pile up, because nothing else makes them wait for the client. */
  async #room(): Promise<void> {
    while (this.bytes.writableNeedDrain) {
      const drained = new Promise<void>((resolve) => this.bytes.once("drain", resolve));
      await Promise.race([drained, this.#sending]);
    }
  }
}

function byName(left: FileEntry, right: FileEntry): number {
  return left.name < right.name ? -1 : left.name > right.name ? 1 : 0;
}
