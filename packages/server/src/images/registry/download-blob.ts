import { createHash, type Hash } from "node:crypto";
import { createReadStream } from "node:fs";
import { open, rename, rm, stat, type FileHandle } from "node:fs/promises";
import { SandboxerError } from "@sandboxer/protocol";
import { systemClock } from "../../support/clock.ts";
import { undefinedIf } from "../../support/errno.ts";
import type { ImageReference } from "../image-reference.ts";
import type { Descriptor } from "../manifest.ts";
import { lie, type RegistryClient } from "./registry-client.ts";
import { ConnectionCut, type Answer } from "./registry-http.ts";

/** Attempts in a row that bring nothing, and all attempts: a registry may cut every connection. */
const FRUITLESS = 5;
const ATTEMPTS = 200;

export interface BlobDownload {
  readonly reference: ImageReference;
  readonly blob: Descriptor;
  /** Where the complete file is put; until then its name ends with `.part`, and a later call continues it. */
  readonly path: string;
  readonly signal?: AbortSignal | undefined;
  /** Called with the number of bytes that are here. */
  readonly onBytes?: (bytes: number) => void;
}

/** Downloads a blob, and hashes it meanwhile. Never writes more than its descriptor promises. */
export async function downloadBlob(client: RegistryClient, download: BlobDownload): Promise<void> {
  const { path, blob, signal } = download;
  if ((await stat(path).catch(undefinedIf("ENOENT")))?.size === blob.size) return;
  const part = `${path}.part`;
  const file = await open(part, "a");
  let digest: string;
  try {
    digest = await fill(client, download, file, part);
    await file.sync();
  } finally {
    await file.close();
  }
  if (digest !== blob.digest) {
    await rm(part, { force: true });
    throw lie(download.reference, `the content of ${blob.digest} has the digest ${digest}`);
  }
  signal?.throwIfAborted();
  await rename(part, path);
}

async function fill(client: RegistryClient, download: BlobDownload, file: FileHandle, part: string): Promise<string> {
  const { blob, reference, signal, onBytes } = download;
  let { size: present } = await file.stat();
  if (present > blob.size) {
    await file.truncate(0);
    present = 0;
  }
  let hash = await hashOf(part, present);
  onBytes?.(present);
  for (let attempt = 1, fruitless = 0; present < blob.size; attempt++) {
    const before = present;
    try {
      const answer = await client.blob(reference, blob.digest, present, signal);
      if (answer.status !== 206 || !continuesAt(answer, present)) {
        // It starts at the beginning, or nowhere. While this waits for the disk, a cut would drop what has arrived.
        if (present > 0) await file.truncate(0);
        present = 0;
        hash = createHash("sha256");
        if (answer.status !== 200) {
          answer.body.destroy();
          throw new ConnectionCut("the registry did not continue where it was asked to");
        }
      }
      for await (const chunk of answer.body as AsyncIterable<Buffer>) {
        present += chunk.length;
        if (present > blob.size) {
          answer.body.destroy();
          throw lie(reference, `${blob.digest} is larger than the ${blob.size} bytes that the manifest promises`);
        }
        hash.update(chunk);
        await file.appendFile(chunk);
        onBytes?.(present);
      }
    } catch (error) {
      signal?.throwIfAborted();
      if (error instanceof SandboxerError || isLocal(error)) throw error;
    }
    fruitless = present > before ? 0 : fruitless + 1;
    if (present === blob.size) break;
    if (fruitless >= FRUITLESS || attempt >= ATTEMPTS) {
      throw new SandboxerError(
        "registry_unavailable",
        `${reference.registry} cut the download of ${reference.repository} after ${present} of ${blob.size} bytes.`,
        { hint: "Try again: the download continues where it stopped." },
      );
    }
    await systemClock.sleep(50 * 2 ** fruitless, signal);
  }
  return `sha256:${hash.digest("hex")}`;
}

/** A registry may ignore the range, or send another one. */
function continuesAt({ headers }: Answer, offset: number): boolean {
  return new RegExp(`^bytes ${offset}-`).test(headers["content-range"] ?? "");
}

/** A failure of this machine's disk, not of the connection. */
function isLocal(error: unknown): boolean {
  return ["ENOSPC", "EDQUOT", "EIO", "EROFS", "EFBIG", "EBADF"].includes((error as NodeJS.ErrnoException).code ?? "");
}

async function hashOf(path: string, bytes: number): Promise<Hash> {
  const hash = createHash("sha256");
  if (bytes === 0) return hash;
  for await (const chunk of createReadStream(path, { highWaterMark: 1 << 20 }) as AsyncIterable<Buffer>)
    hash.update(chunk);
  return hash;
}
