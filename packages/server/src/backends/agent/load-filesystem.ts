import { createReadStream } from "node:fs";
import { pipeline } from "node:stream/promises";
import { SandboxerError } from "@sandboxer/protocol";
import { extract, type Header } from "tar-stream";
import { errnoOf } from "./agent-error.ts";
import type { AgentFiles } from "./agent-files.ts";
import { WHITEOUT } from "./save-filesystem.ts";

/** Writes a saved archive into a fresh sandbox. Names come from a store: nothing but plain paths is accepted. */
export async function loadFilesystem(files: AgentFiles, archivePath: string): Promise<void> {
  const archive = extract();
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
    throw new SandboxerError("image_damaged", `The filesystem snapshot names a file outside of the sandbox: ${path}`);
  }
  const name = path.slice(path.lastIndexOf("/") + 1);
  if (name.startsWith(WHITEOUT)) {
    const removed = path.slice(0, -name.length) + name.slice(WHITEOUT.length);
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

const ENOENT = 2;
const EEXIST = 17;
const READ_AT_ONCE_BYTES = 1024 * 1024;

async function ignoring(errno: number, work: Promise<void>): Promise<void> {
  await work.catch((error: unknown) => {
    if (errnoOf(error) !== errno) throw error;
  });
}
