import { createReadStream } from "node:fs";
import { basename } from "node:path";
import { pipeline } from "node:stream/promises";
import { SandboxerError } from "@sandboxer/protocol";
import { extract, type Header } from "tar-stream";
import { errnoOf } from "./agent-error.ts";
import type { AgentFiles } from "./agent-files.ts";
import { readable } from "./byte-names.ts";
import { isWhiteout, LITERAL, removedBy } from "./whiteout.ts";

/** An option of tar-stream that its types do not know. */
const BYTE_NAMES = { filenameEncoding: "latin1" } as object;

/**
 * Unpacks a saved archive into a fresh sandbox, whose `files` must use raw names. Names come from a store: only plain
 * paths are accepted.
 */
export async function loadFilesystem(files: AgentFiles, archivePath: string): Promise<void> {
  const archive = extract(BYTE_NAMES);
  const reading = pipeline(createReadStream(archivePath, { highWaterMark: READ_AT_ONCE_BYTES }), archive);
  reading.catch(() => {});
  for await (const entry of archive) {
    await loadEntry(files, entry.header, entry as unknown as AsyncIterable<Uint8Array>);
    entry.resume();
  }
  await reading;
}

async function loadEntry(files: AgentFiles, header: Header, content: AsyncIterable<Uint8Array>): Promise<void> {
  const path = `/${header.name.replace(/\/$/, "")}`;
  if (path.split("/").some((part) => part === "..") || path.includes("\0")) {
    throw damaged(`names a file outside of the sandbox: ${readable(path)}`);
  }
  if (isWhiteout(basename(path)) && !isLiteral(header)) {
    const removed = header.type === "file" && header.size === 0 ? removedBy(path) : undefined;
    if (removed === undefined) throw damaged(`removes a path without a name: ${readable(path)}`);
    return ignoring(ENOENT, files.remove(removed, { recursive: true }));
  }
  if (header.type === "directory") await ignoring(EEXIST, files.makeFolder(path, { mode: header.mode ?? 0o755 }));
  else if (header.type === "symlink") {
    await ignoring(ENOENT, files.remove(path, { recursive: true }));
    await files.makeSymlink(header.linkname ?? "", path);
  } else if (header.type === "file") await files.write(path, content, { mode: header.mode ?? 0o644 });
  else return;
  await files.set(path, {
    ...(header.type === "symlink" ? {} : { mode: header.mode ?? 0o644 }),
    owner: { uid: header.uid ?? 0, gid: header.gid ?? 0 },
    modifiedNs: BigInt(header.mtime?.getTime() ?? 0) * 1_000_000n,
  });
}

function isLiteral({ pax }: Header): boolean {
  return (pax as Readonly<Record<string, string>> | null | undefined)?.[LITERAL] !== undefined;
}

function damaged(what: string): SandboxerError {
  return new SandboxerError("image_damaged", `The filesystem snapshot ${what}`);
}

const ENOENT = 2;
const EEXIST = 17;
const READ_AT_ONCE_BYTES = 1024 * 1024;

async function ignoring(errno: number, work: Promise<void>): Promise<void> {
  await work.catch((error: unknown) => {
    if (errnoOf(error) !== errno) throw error;
  });
}
