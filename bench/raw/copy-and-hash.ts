import { createHash } from "node:crypto";
import { copyFile, open, readdir } from "node:fs/promises";
import { createReadStream } from "node:fs";
import { mkdir } from "node:fs/promises";
import { join } from "node:path";
import { timed } from "../rounds.ts";

export interface CopyTimes extends Record<string, number> {
  copy: number;
  hash: number;
  sync: number;
}

/** One plain copy of each file of a folder, its SHA-256 and an optional fsync: one after the other. */
export async function copyAndHash(from: string, to: string, options: { sync: boolean }): Promise<CopyTimes> {
  const times = { copy: 0, hash: 0, sync: 0 };
  await mkdir(to, { recursive: true });
  for (const name of await readdir(from)) {
    const target = join(to, name);
    times.copy += await timed(() => copyFile(join(from, name), target));
    times.hash += await timed(() => hash(target));
    if (options.sync) times.sync += await timed(() => sync(target));
  }
  return times;
}

async function hash(path: string): Promise<string> {
  const digest = createHash("sha256");
  for await (const chunk of createReadStream(path, { highWaterMark: 1024 * 1024 })) digest.update(chunk as Buffer);
  return digest.digest("hex");
}

async function sync(path: string): Promise<void> {
  const handle = await open(path, "r+");
  try {
    await handle.sync();
  } finally {
    await handle.close();
  }
}
