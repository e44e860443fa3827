import { SandboxerError } from "@sandboxer/protocol";
import type { FileContent, FileRange, FolderWatch, FolderWatcher, RawFileAttributes, RawFiles } from "../backend.ts";
import { errnoOf } from "./agent-error.ts";
import type { AgentConnection } from "./agent-connection.ts";
import type { AgentWatches } from "./agent-watches.ts";
import { readable } from "./byte-names.ts";
import { readEntry, readPage, type AgentFileEntry } from "./file-entry.ts";
import { Request } from "./frame-types.ts";
import { MalformedFrameError, PayloadWriter, type PayloadReader, type StringEncoding } from "./payload.ts";

/** The maximum that the agent returns at once. */
export const READ_BYTES = 256 * 1024;
const WRITE_BYTES = 256 * 1024;
/** How many pieces of a file are requested at once, so that neither side waits for the other. */
const READS_AHEAD = 3;
const WRITES_AHEAD = 3;
/** A folder is listed in memory; filling one inside must not fill the server's. */
const MAX_ENTRIES = 100_000;
/** The total size of names and link targets. */
const MAX_LISTED_BYTES = 32 * 1024 ** 2;
const ZEROS = new Uint8Array(WRITE_BYTES);
const WriteFlag = { create: 1, truncate: 2 } as const;
const SetFlag = { mode: 1, owner: 2, modified: 4 } as const;
const E2BIG = 7;

/** Files inside a sandbox through its agent: as the sandbox's user for clients, as root for snapshots. */
export class AgentFiles implements RawFiles {
  readonly #connection: AgentConnection;
  readonly #asRoot: number;
  readonly #names: StringEncoding;

  readonly #watches: AgentWatches | undefined;

  constructor(
    connection: AgentConnection,
    identity: "user" | "root",
    options: { readonly names?: StringEncoding; readonly watches?: AgentWatches } = {},
  ) {
    this.#connection = connection;
    this.#asRoot = identity === "root" ? 1 : 0;
    this.#names = options.names ?? "utf8";
    this.#watches = options.watches;
  }

  async stat(path: string): Promise<AgentFileEntry> {
    return this.#connection.ask(Request.fileStat, this.#start().string(checked(path)), (reply) =>
      readEntry(reply, this.#names),
    );
  }

  async list(path: string): Promise<readonly AgentFileEntry[]> {
    const entries: AgentFileEntry[] = [];
    let bytes = 0;
    for (let more = true; more;) {
      const payload = this.#start().u32(entries.length).string(checked(path));
      const page = await this.#connection.ask(Request.fileList, payload, (reply) => readPage(reply, this.#names));
      for (const entry of page.entries) entries.push(entry);
      bytes += page.bytes;
      more = page.more;
      if (entries.length > MAX_ENTRIES) throw this.#tooMuchIn(path, `more than ${MAX_ENTRIES} entries`);
      if (bytes > MAX_LISTED_BYTES) throw this.#tooMuchIn(path, "names and link targets that are too long in total");
    }
    return entries;
  }

  async *read(path: string, options: FileRange = {}): AsyncGenerator<Uint8Array> {
    let offset = options.offset ?? 0;
    const end = options.length === undefined ? Number.POSITIVE_INFINITY : offset + options.length;
    const underWay: { readonly length: number; readonly data: Promise<Buffer> }[] = [];
    // Most files are small: more pieces are requested only after a full one.
    let ahead = 1;
    for (let asked = offset; ;) {
      for (; underWay.length < ahead && asked < end; asked += READ_BYTES) {
        const length = Math.min(READ_BYTES, end - asked);
        const data = this.#readPiece(path, asked, length, (reply) => reply.rest());
        // The failure of an abandoned piece is ignored.
        data.catch(() => {});
        underWay.push({ length, data });
      }
      const oldest = underWay.shift();
      const data = await oldest?.data;
      if (oldest === undefined || data === undefined || data.length === 0) return;
      offset += data.length;
      ahead = READS_AHEAD;
      yield data;
      if (data.length === oldest.length) continue;
      // The file ended a moment ago; later pieces do not follow.
      underWay.length = 0;
      asked = offset;
      ahead = 1;
    }
  }

  /** Reads as much as exists and fits into this memory, and returns the filled part. */
  async readInto(path: string, offset: number, memory: Buffer): Promise<Buffer> {
    const bytes = await this.#readPiece(path, offset, memory.length, (reply) => reply.passing().copy(memory));
    return memory.subarray(0, bytes);
  }

  async #readPiece<Result>(
    path: string,
    offset: number,
    length: number,
    read: (reply: PayloadReader) => Result,
  ): Promise<Result> {
    const payload = this.#start().u64(offset).u32(length).string(checked(path));
    return await this.#connection.ask(Request.fileRead, payload, (reply) => {
      if (reply.left > length) throw new MalformedFrameError("more bytes than asked for");
      return read(reply);
    });
  }

  async write(path: string, content: FileContent, options: { mode?: number; holes?: boolean } = {}): Promise<void> {
    let offset = 0;
    let endsInHole = false;
    const underWay: Promise<void>[] = [];
    // The agent processes requests in order, so writes after a failed one change nothing.
    const put = async (data: Uint8Array, flags = 0): Promise<void> => {
      const payload = this.#start()
        .u8(flags)
        .u32(options.mode ?? 0o644);
      payload.u64(offset).string(checked(path)).bytes(data);
      offset += data.length;
      const written = this.#connection.request(Request.fileWrite, payload);
      written.catch(() => {});
      underWay.push(written);
      if (underWay.length >= WRITES_AHEAD) await underWay.shift();
    };
    await put(new Uint8Array(), WriteFlag.create | WriteFlag.truncate);
    // Nothing is read for a file that cannot be written.
    await underWay.shift();
    for await (const chunk of content instanceof Uint8Array ? [content] : content) {
      for (let start = 0; start < chunk.length; start += WRITE_BYTES) {
        const piece = chunk.subarray(start, start + WRITE_BYTES);
        endsInHole = options.holes === true && piece.length > 0 && isZero(piece);
        if (endsInHole) offset += piece.length;
        else await put(piece);
      }
    }
    if (endsInHole) {
      // One byte gives the file its length.
      offset -= 1;
      await put(Uint8Array.of(0));
    }
    for (const written of underWay) await written;
  }

  async makeFolder(path: string, options: { parents?: boolean; mode?: number } = {}): Promise<void> {
    const payload = this.#start()
      .u8(options.parents === true ? 1 : 0)
      .u32(options.mode ?? 0o755);
    await this.#connection.request(Request.fileMakeFolder, payload.string(checked(path)));
  }

  async remove(path: string, options: { recursive?: boolean } = {}): Promise<void> {
    const payload = this.#start()
      .u8(options.recursive === true ? 1 : 0)
      .string(checked(path));
    await this.#connection.request(Request.fileRemove, payload, { timeoutMs: 300_000 });
  }

  async rename(from: string, to: string): Promise<void> {
    await this.#connection.request(Request.fileRename, this.#start().string(checked(from)).string(checked(to)));
  }

  async makeSymlink(target: string, path: string): Promise<void> {
    await this.#connection.request(Request.fileSymlink, this.#start().string(target).string(checked(path)));
  }

  async makeHardLink(existing: string, path: string): Promise<void> {
    await this.#connection.request(Request.fileLink, this.#start().string(checked(existing)).string(checked(path)));
  }

  async attributes(path: string): Promise<ReadonlyMap<string, Uint8Array>> {
    try {
      const payload = this.#start().string(checked(path));
      const pairs = await this.#connection.ask(Request.fileAttributes, payload, (reply) =>
        reply.list(() => [reply.string(this.#names), Uint8Array.from(reply.bytes())] as const),
      );
      return new Map(pairs);
    } catch (thrown) {
      if (errnoOf(thrown) !== E2BIG) throw thrown;
      throw new SandboxerError("too_large", `${path} has more extended attributes than can be read.`);
    }
  }

  async setAttribute(path: string, name: string, value: Uint8Array): Promise<void> {
    const payload = this.#start().string(checked(path)).string(name).bytes(value);
    await this.#connection.request(Request.fileSetAttribute, payload);
  }

  async removeAttribute(path: string, name: string): Promise<void> {
    await this.#connection.request(Request.fileRemoveAttribute, this.#start().string(checked(path)).string(name));
  }

  async watch(path: string, watcher: FolderWatcher): Promise<FolderWatch> {
    if (this.#watches === undefined) throw new SandboxerError("not_supported", "Names of any bytes are not watched.");
    return this.#watches.add(this.#start().string(checked(path)), watcher);
  }

  async set(path: string, attributes: RawFileAttributes): Promise<void> {
    const what =
      (attributes.mode === undefined ? 0 : SetFlag.mode) |
      (attributes.owner === undefined ? 0 : SetFlag.owner) |
      (attributes.modifiedNs === undefined ? 0 : SetFlag.modified);
    const payload = this.#start()
      .u8(what)
      .u32(attributes.mode ?? 0);
    payload
      .u32(attributes.owner?.uid ?? 0)
      .u32(attributes.owner?.gid ?? 0)
      .i64(attributes.modifiedNs ?? 0n);
    await this.#connection.request(Request.fileSet, payload.string(checked(path)));
  }

  #tooMuchIn(path: string, what: string): SandboxerError {
    const folder = this.#names === "latin1" ? readable(path) : path;
    const hint = "Split it into several folders.";
    return new SandboxerError("limit_reached", `The folder ${folder} has ${what}.`, { hint });
  }

  #start(): PayloadWriter {
    return new PayloadWriter(this.#names).u8(this.#asRoot);
  }
}

function isZero(bytes: Uint8Array): boolean {
  return Buffer.compare(bytes, ZEROS.subarray(0, bytes.length)) === 0;
}

function checked(path: string): string {
  if (!path.startsWith("/"))
    throw new SandboxerError("bad_request", `The path ${JSON.stringify(path)} is not absolute.`);
  if (path.includes("\0")) throw new SandboxerError("bad_request", "A path cannot contain NUL.");
  return path;
}
