import { createWriteStream } from "node:fs";
import { stat } from "node:fs/promises";
import { join } from "node:path";
import { Readable } from "node:stream";
import { pipeline } from "node:stream/promises";
import { createGzip } from "node:zlib";
import { SandboxerError } from "@sandboxer/protocol";
import type { SandboxBackend, SandboxHandle, SnapshotOptions, SnapshotPayload } from "../../../backends/backend.ts";
import type { CallOptions } from "../../../support/call-options.ts";
import { packWorkspace } from "./pack-workspace.ts";
import { DEFAULT_WORKSPACE, emptyTally, WORKSPACE_KIND, WORKSPACE_MEMBER } from "./workspace-archive.ts";

/** For sandboxes without a disk limit. */
const MAX_BYTES = 64 * 1024 ** 3;

export interface WorkspaceCapture {
  readonly backend: SandboxBackend;
  readonly handle: SandboxHandle;
  readonly diskBytes: number | undefined;
  /** As in a snapshot. */
  readonly onStill?: SnapshotOptions["onStill"];
}

/**
 * Captures the working folder of a sandbox, which keeps running, so that any backend with files can load it. Its
 * processes are stopped meanwhile if the backend can do that.
 */
export async function captureWorkspace(
  { backend, handle, diskBytes, onStill }: WorkspaceCapture,
  into: string,
  options: CallOptions,
): Promise<SnapshotPayload> {
  if (backend.capturesWorkspace === true) return await captureNatively(handle, backend.name, into, options);
  options.onProgress?.({ phase: "saving files" });
  const folder = (await handle.workspaceFolder?.()) ?? backend.workspaceFolder ?? DEFAULT_WORKSPACE;
  const names = handle.rawFiles === undefined ? "utf8" : "latin1";
  const source = { files: handle.rawFiles ?? handle.files, names, folder, maxBytes: diskBytes ?? MAX_BYTES } as const;
  const tally = emptyTally();
  const path = join(into, WORKSPACE_MEMBER);
  const pack = async (): Promise<void> => {
    const counted = async function* (): AsyncGenerator<Uint8Array> {
      for await (const chunk of packWorkspace(source, tally)) {
        options.onProgress?.({ phase: "saving files", doneBytes: tally.bytes });
        yield chunk;
      }
    };
    const signal = options.signal === undefined ? {} : { signal: options.signal };
    const bytes = Readable.from(counted(), { objectMode: false });
    await pipeline(bytes, createGzip({ level: 1 }), createWriteStream(path, { flags: "wx" }), signal);
  };
  if (handle.whileFrozen === undefined) await pack();
  else {
    const stillMs = performance.now();
    await handle.whileFrozen(pack);
    onStill?.(performance.now() - stillMs);
  }
  const { files, folders, links, bytes, leftOut, hardLinks, attributes, attributesLost } = tally;
  const portable = {
    format: 1,
    folder,
    files,
    folders,
    links,
    bytes,
    left_out: leftOut,
    hard_links: hardLinks ?? null,
    xattrs: attributes ?? null,
    xattrs_lost: attributesLost,
    still: handle.whileFrozen !== undefined,
  };
  const members = [{ name: WORKSPACE_MEMBER, path, sizeBytes: (await stat(path)).size }];
  return { kind: WORKSPACE_KIND, members, requirements: { portable } };
}

async function captureNatively(
  handle: SandboxHandle,
  backend: string,
  into: string,
  options: CallOptions,
): Promise<SnapshotPayload> {
  const state = await handle.snapshot(into, { ...options, mode: "filesystem", leaveRunning: true });
  if (state.members.some(({ name }) => name === WORKSPACE_MEMBER)) return state;
  throw new SandboxerError("not_supported", `The snapshots of ${backend} contain no ${WORKSPACE_MEMBER}.`, {
    hint: "Other backends cannot load them; take a filesystem snapshot instead.",
  });
}
