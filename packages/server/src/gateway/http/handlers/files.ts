import { posix } from "node:path";
import type { Readable } from "node:stream";
import type { FilesOf } from "../../../manager/files/file-verbs.ts";
import type { SandboxManager } from "../../../manager/sandbox-manager.ts";
import { bodyBytes } from "../body-bytes.ts";
import { type Handlers, StreamAnswer } from "../handler.ts";

interface FileCall {
  readonly params: { readonly id: string };
  readonly epoch: number | undefined;
  readonly signal: AbortSignal;
}

/** Files and folders of a sandbox. Content is streamed. */
export function filesHandlers({ files }: SandboxManager) {
  return {
    readFile: async (call) => {
      const { path, offset, length } = call.query;
      const range = { ...(offset === undefined ? {} : { offset }), ...(length === undefined ? {} : { length }) };
      return streamed(call, await files.read(of(call), path, range), "application/octet-stream", path);
    },
    writeFile: (call) => files.write(of(call), call.query.path, bodyBytes(call.stream), call.query),
    removeFile: (call) => files.remove(of(call), call.query.path, call.query.recursive === true),
    statFile: (call) => files.stat(of(call), call.query.path),
    listFiles: async (call) => ({ items: await files.list(of(call), call.query.path), next_cursor: null }),
    makeFolder: (call) => files.makeFolder(of(call), call.body.path, call.body.parents),
    renameFile: (call) => files.rename(of(call), call.body.from, call.body.to),
    downloadTree: async (call) => {
      const { path, skip_unreadable } = call.query;
      const tree = await files.downloadTree(of(call), path, { skipUnreadable: skip_unreadable === true });
      return streamed(call, tree, "application/x-tar", path, ".tar");
    },
    uploadTree: (call) => files.uploadTree(of(call), call.query.path, bodyBytes(call.stream)),
  } satisfies Partial<Handlers>;
}

function of({ params, epoch, signal }: FileCall): FilesOf {
  return { sandboxId: params.id, epoch, signal };
}

/**
 * Browsers save it and never show it. The name comes from the sandbox, so everything except letters and digits is
 * encoded.
 */
function streamed({ signal }: FileCall, body: Readable, type: string, path: string, suffix = ""): StreamAnswer {
  signal.addEventListener("abort", () => body.destroy(), { once: true });
  if (signal.aborted) body.destroy();
  const name = (posix.basename(path) || "root") + suffix;
  const encoded = encodeURIComponent(name.toWellFormed()).replaceAll(
    /[!'()*]/g,
    (character) => `%${character.charCodeAt(0).toString(16).toUpperCase()}`,
  );
  return new StreamAnswer(type, body, { "content-disposition": `attachment; filename*=UTF-8''${encoded}` });
}
