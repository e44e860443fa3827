import { createWriteStream } from "node:fs";
import { chmod, rename, rm, stat } from "node:fs/promises";
import { basename, dirname, join, resolve } from "node:path";
import { Readable } from "node:stream";
import { pipeline } from "node:stream/promises";
import type { Sandbox } from "@sandboxer/client";
import { unpackFolder } from "@sandboxer/client/node";
import { SandboxerError } from "@sandboxer/protocol/errors";
import type { Io } from "../io.ts";
import type { ProgressLine } from "../output/progress.ts";
import { counted } from "./counted.ts";
import { type Found, placeOf } from "./place.ts";
import type { Copied } from "./upload.ts";

/** Copies a file or a folder of a sandbox to this machine. */
export async function download(sandbox: Sandbox, source: string, target: string, line: ProgressLine): Promise<Copied> {
  const path = source.replace(/\/\.$/, "") || "/";
  const { kind, mode, sizeBytes } = await sandbox.files.stat(path);
  const to = resolve(placeOf(source, target, await localFound(target)));
  if (kind === "folder") {
    const tar = await sandbox.files.downloadTar(path);
    return { from: source, to, ...(await unpackFolder(counted(tar, line, "download", null), to)) };
  }
  if ((await localFound(to)) === "folder") throw new SandboxerError("bad_request", `${to} is a folder.`);
  const bytes = counted(await sandbox.files.readStream(path), line, "download", kind === "file" ? sizeBytes : null);
  await writeWhole(bytes, to, mode & 0o777);
  return { from: source, to, files: 1, bytes: (await stat(to)).size };
}

/** Prints a file on stdout. */
export async function downloadToStdout(sandbox: Sandbox, source: string, io: Io): Promise<Copied> {
  let bytes = 0;
  for await (const piece of await sandbox.files.readStream(source)) {
    await io.writeBytes("stdout", piece);
    bytes += piece.length;
  }
  return { from: source, to: "-", files: 1, bytes };
}

/** The file appears only when it is complete. */
async function writeWhole(bytes: AsyncIterable<Uint8Array>, path: string, mode: number): Promise<void> {
  const draft = join(dirname(path), `.${basename(path)}.${process.pid}.part`);
  try {
    await pipeline(Readable.from(bytes), createWriteStream(draft, { flags: "wx" }));
    await chmod(draft, mode);
    await rename(draft, path);
  } catch (error) {
    await rm(draft, { force: true });
    throw error;
  }
}

async function localFound(path: string): Promise<Found> {
  const facts = await stat(path).catch(() => undefined);
  if (facts === undefined) return "nothing";
  return facts.isDirectory() ? "folder" : "file";
}
