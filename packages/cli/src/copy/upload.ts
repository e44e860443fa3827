import { createReadStream } from "node:fs";
import { readdir, stat } from "node:fs/promises";
import { join } from "node:path";
import type { Sandbox } from "@sandboxer/client";
import { packFolder } from "@sandboxer/client/node";
import { SandboxerError } from "@sandboxer/protocol/errors";
import type { Io } from "../io.ts";
import type { ProgressLine } from "../output/progress.ts";
import { counted } from "./counted.ts";
import { placeOf } from "./place.ts";
import { remoteFound } from "./remote-found.ts";

export interface Copied {
  readonly from: string;
  readonly to: string;
  readonly files: number;
  readonly bytes: number;
}

/** Copies a file or a folder of this machine into a sandbox. */
export async function upload(
  sandbox: Sandbox,
  source: string,
  target: string,
  { io, line }: { readonly io: Io; readonly line: ProgressLine },
): Promise<Copied> {
  const facts = await stat(source).catch((error: unknown) => {
    throw new SandboxerError("bad_request", `${source} cannot be read: ${(error as Error).message}`, {
      hint: "Check the path on this machine.",
    });
  });
  const to = placeOf(source, target, await remoteFound(sandbox, target));
  if (facts.isDirectory()) {
    const totalBytes = io.interactive ? await sizeOf(source) : null;
    const result = await sandbox.files.uploadTar(to, counted(packFolder(source), line, "upload", totalBytes));
    return { from: source, to, ...result };
  }
  const bytes = counted(createReadStream(source), line, "upload", facts.size);
  await sandbox.files.write(to, bytes, { mode: facts.mode & 0o777 });
  return { from: source, to, files: 1, bytes: facts.size };
}

/** Writes stdin to a file. */
export async function uploadStdin(sandbox: Sandbox, target: string, io: Io, line: ProgressLine): Promise<Copied> {
  let bytes = 0;
  const pieces = async function* (): AsyncGenerator<Uint8Array, void, undefined> {
    for await (const piece of counted(io.stdin.bytes(), line, "upload", null)) {
      bytes += piece.length;
      yield piece;
    }
  };
  await sandbox.files.write(target, pieces());
  return { from: "-", to: target, files: 1, bytes };
}

async function sizeOf(folder: string): Promise<number> {
  let total = 0;
  for (const entry of await readdir(folder, { withFileTypes: true, recursive: true })) {
    if (entry.isFile()) total += (await stat(join(entry.parentPath, entry.name))).size;
  }
  return total;
}
