import { posix } from "node:path";
import { Readable } from "node:stream";
import type { FileEntryRecord, RouteName } from "@sandboxer/protocol";
import type { LiveSandbox } from "../../../manager/live-sandbox.ts";
import type { SandboxManager } from "../../../manager/sandbox-manager.ts";
import { downloadTree } from "../../../manager/files/download-tree.ts";
import { uploadTree } from "../../../manager/files/upload-tree.ts";
import { bodyBytes } from "../body-bytes.ts";
import { type Handlers, StreamAnswer } from "../handler.ts";

type FileRouteName = Extract<
  RouteName,
  | "readFile"
  | "writeFile"
  | "removeFile"
  | "statFile"
  | "listFiles"
  | "makeFolder"
  | "renameFile"
  | "downloadTree"
  | "uploadTree"
>;
type Files = LiveSandbox["handle"]["files"];
type Entry = Awaited<ReturnType<Files["stat"]>>;

interface FileCall {
  readonly params: { readonly id: string };
  readonly epoch: number | undefined;
  readonly signal: AbortSignal;
}

/** Files and trees of a sandbox. Content goes through as it comes. */
export function filesHandlers(manager: SandboxManager): Pick<Handlers, FileRouteName> {
  const work = async <Result>(call: FileCall, action: (files: Files) => Promise<Result>): Promise<Result> => {
    const { files, release } = await manager.files(call.params.id, call.epoch, { signal: call.signal });
    try {
      return await action(files);
    } finally {
      release();
    }
  };

  const change = async (call: FileCall, action: (files: Files) => Promise<void>): Promise<undefined> => {
    await work(call, action);
    return undefined;
  };

  /** The sandbox is in use until the last byte is out. */
  const streamed = async (
    call: FileCall & { readonly query: { readonly path: string } },
    suffix: "" | ".tar",
    open: (files: Files) => Promise<Readable>,
  ): Promise<StreamAnswer> => {
    const { files, release } = await manager.files(call.params.id, call.epoch, { signal: call.signal });
    try {
      const body = await open(files);
      body.once("close", release);
      call.signal.addEventListener("abort", () => body.destroy(), { once: true });
      if (call.signal.aborted) body.destroy();
      const contentType = suffix === ".tar" ? "application/x-tar" : "application/octet-stream";
      return new StreamAnswer(contentType, body, asDownload(call.query.path, suffix));
    } catch (error) {
      release();
      throw error;
    }
  };

  return {
    readFile: (call) =>
      streamed(call, "", async (files) => {
        const { path, offset, length } = call.query;
        const range = { ...(offset === undefined ? {} : { offset }), ...(length === undefined ? {} : { length }) };
        return begun(files.read(path, range));
      }),

    writeFile: (call) =>
      change(call, async (files) => {
        const { path, mode, parents } = call.query;
        if (parents === true) await files.makeFolder(posix.dirname(path), { parents: true });
        await files.write(path, bodyBytes(call.stream), mode === undefined ? {} : { mode });
        // The mode of the call counts for a file that was there before, too.
        if (mode !== undefined) await files.set(path, { mode });
      }),

    removeFile: (call) =>
      change(call, (files) => files.remove(call.query.path, { recursive: call.query.recursive === true })),

    statFile: (call) => work(call, async (files) => entryRecord(await files.stat(call.query.path))),

    listFiles: (call) =>
      work(call, async (files) => {
        const entries = (await files.list(call.query.path)).map(entryRecord);
        const items = entries.toSorted((left, right) => (left.name < right.name ? -1 : left.name > right.name ? 1 : 0));
        return { items, next_cursor: null };
      }),

    makeFolder: (call) => change(call, (files) => files.makeFolder(call.body.path, { parents: call.body.parents })),

    renameFile: (call) => change(call, (files) => files.rename(call.body.from, call.body.to)),

    downloadTree: (call) =>
      streamed(call, ".tar", (files) =>
        downloadTree(files, call.query.path, { skipUnreadable: call.query.skip_unreadable === true }),
      ),

    uploadTree: (call) =>
      work(call, (files) => uploadTree(files, call.query.path, Readable.from(bodyBytes(call.stream)))),
  };
}

/** A browser saves it, and never shows it. The name is the sandbox's, so that only letters and digits stay as they are. */
function asDownload(path: string, suffix: string): Record<string, string> {
  const name = (posix.basename(path) || "root") + suffix;
  const encoded = encodeURIComponent(name.toWellFormed()).replaceAll(
    /[!'()*]/g,
    (character) => `%${character.charCodeAt(0).toString(16).toUpperCase()}`,
  );
  return { "content-disposition": `attachment; filename*=UTF-8''${encoded}` };
}

/** Read up to the first bytes: what cannot be read is an error of the call, not a broken answer. */
async function begun(content: AsyncIterable<Uint8Array>): Promise<Readable> {
  const iterator = content[Symbol.asyncIterator]();
  const first = await iterator.next();
  const all = async function* (): AsyncGenerator<Uint8Array> {
    for (let next = first; next.done !== true; next = await iterator.next()) yield next.value;
  };
  return Readable.from(all(), { objectMode: false });
}

function entryRecord(entry: Entry): FileEntryRecord {
  const { name, kind, mode, uid, gid } = entry;
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

/** A time inside the sandbox may be any number: what is no date is the first one. */
function modifiedAt(ms: number): string {
  return new Date(Math.abs(ms) <= 8.64e15 ? ms : 0).toISOString();
}
