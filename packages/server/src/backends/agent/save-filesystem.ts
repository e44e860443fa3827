import { Buffer } from "node:buffer";
import { open, type FileHandle } from "node:fs/promises";
import { basename } from "node:path";
import { SandboxerError } from "@sandboxer/protocol";
import { beginAhead } from "../../support/begin-ahead.ts";
import { tarEnd, tarHeader, tarPadding, type TarEntry } from "../../support/tar-header.ts";
import { READ_BYTES, type AgentFiles } from "./agent-files.ts";
import { readable, toBytes } from "./byte-names.ts";
import { changedFiles, type ChangedFile } from "./changed-files.ts";
import type { AgentFileEntry } from "./file-entry.ts";
import { isWhiteout, LITERAL_RECORD, whiteoutOf } from "./whiteout.ts";

/** Pieces that are requested before the first of them is written, so that neither side waits for the other. */
const PIECES_AHEAD = 8;
const STAGE_BYTES = 1024 * 1024;
/** Limit for names and other metadata, besides content: half a million files, and more if they are small. */
const HEAD_BYTES = 256 * 1024 ** 2;
const REMOVED = { mode: 0o644, uid: 0, gid: 0, sizeBytes: 0, modifiedMs: 0 };

/** A part of the archive: known bytes, or a range of a file inside. */
type Piece = Buffer | { readonly path: string; readonly offset: number; readonly length: number };

/**
 * Writes the changes of a sandbox to its root filesystem as a tar archive with limited content. It is read through the
 * agent, so it is independent of the engine and can be loaded by any engine version. `files` must use raw names, so
 * that names that are not text are saved too.
 */
export async function saveFilesystem(
  files: AgentFiles,
  basePath: string,
  into: string,
  maxBytes: number,
): Promise<void> {
  const handle = await open(into, "w");
  try {
    const stage = new Stage(handle);
    // As many as can be in flight, and the one that is being written.
    const rooms = Array.from({ length: PIECES_AHEAD + 1 }, () => Buffer.allocUnsafeSlow(READ_BYTES));
    let reads = 0;
    const begin = async (piece: Piece): Promise<Buffer> => {
      if (Buffer.isBuffer(piece)) return piece;
      const { path, offset, length } = piece;
      const data = await files.readInto(path, offset, (rooms[reads++ % rooms.length] as Buffer).subarray(0, length));
      if (data.length === length) return data;
      throw new SandboxerError("sandbox_failed", `${readable(path)} became shorter while the sandbox was paused.`);
    };
    for await (const data of beginAhead(archive(changedFiles(files, basePath), maxBytes), PIECES_AHEAD, begin))
      await stage.add(data);
    await stage.flush();
  } finally {
    await handle.close();
  }
}

async function* archive(changes: AsyncIterable<ChangedFile>, maxBytes: number): AsyncGenerator<Piece, void, undefined> {
  let leftBytes = maxBytes;
  let leftHeadBytes = Math.max(maxBytes, HEAD_BYTES);
  for await (const { path, entry } of changes) {
    const header = entry === undefined ? whiteout(path) : describe(path, entry);
    if (header === undefined) continue;
    const head = tarHeader(header);
    leftHeadBytes -= head.length;
    // A sparse file is larger than the space it uses inside.
    leftBytes -= header.sizeBytes;
    if (leftHeadBytes < 0) throw new SandboxerError("too_large", "The sandbox has more files than can be saved.");
    if (leftBytes < 0)
      throw new SandboxerError("too_large", `The sandbox's files are larger than its disk limit (${readable(path)}).`);
    yield head;
    for (let offset = 0; offset < header.sizeBytes; offset += READ_BYTES)
      yield { path, offset, length: Math.min(READ_BYTES, header.sizeBytes - offset) };
    yield tarPadding(header.sizeBytes);
  }
  yield tarEnd();
}

/** Undefined for sockets and pipes, which are useless without their processes. */
function describe(path: string, entry: AgentFileEntry): TarEntry | undefined {
  const { kind, mode, uid, gid, modifiedMs } = entry;
  if (kind === "other") return undefined;
  const name = toBytes(kind === "folder" ? `${path.slice(1)}/` : path.slice(1));
  const sizeBytes = kind === "file" ? entry.sizeBytes : 0;
  const pax = isWhiteout(basename(path)) ? LITERAL_RECORD : undefined;
  const header = { kind, name, pax, mode: mode & 0o7777, uid, gid, sizeBytes, modifiedMs };
  return kind === "symlink" ? { ...header, linkTarget: toBytes(entry.linkTarget ?? "") } : header;
}

function whiteout(path: string): TarEntry {
  return { ...REMOVED, kind: "file", name: toBytes(whiteoutOf(path).slice(1)) };
}

/** Buffers writes, so that the many small parts of an archive become few writes. */
class Stage {
  readonly #handle: FileHandle;
  readonly #bytes = Buffer.allocUnsafeSlow(STAGE_BYTES);
  #filled = 0;

  constructor(handle: FileHandle) {
    this.#handle = handle;
  }

  /** Does not use the data after it returns. */
  async add(data: Buffer): Promise<void> {
    for (let taken = 0; taken < data.length;) {
      const copied = data.copy(this.#bytes, this.#filled, taken);
      taken += copied;
      this.#filled += copied;
      if (this.#filled === STAGE_BYTES) await this.flush();
    }
  }

  async flush(): Promise<void> {
    for (let written = 0; written < this.#filled;)
      written += (await this.#handle.write(this.#bytes, written, this.#filled - written)).bytesWritten;
    this.#filled = 0;
  }
}
