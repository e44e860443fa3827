import { type FileHandle, link, open, rename, rm, stat } from "node:fs/promises";
import { dirname, join } from "node:path";
import { ObjectNotFoundError } from "../store.ts";
import type { BlobStat, Chunks, ReadOptions, WriteOptions, WriteOutcome } from "../store.ts";
import { syncPath } from "../../support/replace-file.ts";
import { makeFolder } from "./durable.ts";
import { hasCode, undefinedIf } from "../../support/errno.ts";
import type { TemporaryFiles } from "./temporary-files.ts";

const READ_BYTES = 1024 * 1024;

/** Written back while more arrives, so that the sync at the end has little left to do. */
const WRITE_BACK_EVERY_BYTES = 32 * 1024 * 1024;

/** Blobs on a directory: written under a temporary name, synced, then linked or renamed into place. */
export class DirectoryBlobs {
  readonly #root: string;
  readonly #temporary: TemporaryFiles;

  constructor(root: string, temporary: TemporaryFiles) {
    this.#root = root;
    this.#temporary = temporary;
  }

  async stat(key: string): Promise<BlobStat | undefined> {
    const found = await stat(join(this.#root, key)).catch(undefinedIf("ENOENT", "ENOTDIR"));
    return found?.isFile() === true ? { sizeBytes: found.size } : undefined;
  }

  async *read(key: string, options: ReadOptions): AsyncIterable<Uint8Array> {
    const handle = await open(join(this.#root, key), "r").catch(undefinedIf("ENOENT", "ENOTDIR"));
    if (handle === undefined) throw new ObjectNotFoundError(key);
    try {
      let position = options.start ?? 0;
      const end = options.end ?? Number.POSITIVE_INFINITY;
      const memory = chunkMemory(options.reuseMemory ?? false);
      while (position < end) {
        options.signal?.throwIfAborted();
        const wanted = Math.min(READ_BYTES, end - position);
        const { bytesRead, buffer } = await handle.read(memory(wanted), 0, wanted, position);
        if (bytesRead === 0) return;
        position += bytesRead;
        yield buffer.subarray(0, bytesRead);
      }
    } finally {
      await handle.close();
    }
  }

  async write(key: string, chunks: Chunks, options: WriteOptions): Promise<WriteOutcome> {
    const temporary = await this.#temporary.path();
    try {
      const sizeBytes = await writeSynced(temporary, chunks, options.signal);
      const placed = await this.#place(temporary, join(this.#root, key), options.ifAbsent ?? false);
      return placed ? { outcome: "written", sizeBytes } : { outcome: "conflict" };
    } catch (error) {
      this.#temporary.noteFailure(error);
      throw error;
    } finally {
      // After a rename there is nothing left under this name.
      await rm(temporary, { force: true });
    }
  }

  async #place(temporary: string, target: string, ifAbsent: boolean): Promise<boolean> {
    const move = async (): Promise<void> => await (ifAbsent ? link(temporary, target) : rename(temporary, target));
    try {
      await move().catch(async (error: unknown) => {
        if (!hasCode(error, "ENOENT")) throw error;
        // Does not create a folder for a file that disappeared together with its store.
        await stat(temporary);
        await makeFolder(dirname(target));
        await move();
      });
    } catch (error) {
      if (ifAbsent && hasCode(error, "EEXIST")) return false;
      throw error;
    }
    await syncPath(dirname(target));
    return true;
  }
}

/** Fresh memory for each chunk, or that of the chunk before last. */
function chunkMemory(reuse: boolean): (wantedBytes: number) => Buffer {
  if (!reuse) return (wantedBytes) => Buffer.allocUnsafeSlow(wantedBytes);
  let [next, other]: [Buffer?, Buffer?] = [];
  return (wantedBytes) => {
    [next, other] = [other ?? Buffer.allocUnsafeSlow(READ_BYTES), next];
    return next.subarray(0, wantedBytes);
  };
}

async function writeSynced(path: string, chunks: Chunks, signal: AbortSignal | undefined): Promise<number> {
  const handle = await open(path, "wx", 0o600);
  let writeBack: Promise<void> = Promise.resolve();
  try {
    let sizeBytes = 0;
    let dirtyBytes = 0;
    for await (const chunk of chunks) {
      signal?.throwIfAborted();
      await writeAll(handle, chunk);
      sizeBytes += chunk.byteLength;
      dirtyBytes += chunk.byteLength;
      if (dirtyBytes < WRITE_BACK_EVERY_BYTES) continue;
      await writeBack;
      dirtyBytes = 0;
      writeBack = handle.datasync();
      // A failure surfaces at the next `await writeBack`.
      writeBack.catch(() => undefined);
    }
    signal?.throwIfAborted();
    await writeBack;
    await handle.sync();
    return sizeBytes;
  } finally {
    await writeBack.catch(() => undefined);
    await handle.close();
  }
}

async function writeAll(handle: FileHandle, chunk: Uint8Array): Promise<void> {
  for (let done = 0; done < chunk.byteLength;) {
    const { bytesWritten } = await handle.write(chunk, done, chunk.byteLength - done);
    done += bytesWritten;
  }
}
