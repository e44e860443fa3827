import { randomUUID } from "node:crypto";
import { link, mkdir, readFile, rm, writeFile } from "node:fs/promises";
import { join } from "node:path";
import { hasCode, undefinedIf } from "../support/errno.ts";

/**
 * The id of a data directory, created once. Providers mark sandboxes with it, so that each installation cleans up only
 * its own.
 */
export async function installationId(dataDirectory: string): Promise<string> {
  const path = join(dataDirectory, "installation");
  await mkdir(dataDirectory, { recursive: true, mode: 0o700 });
  const known = await read(path);
  if (known !== undefined) return known;
  const id = randomUUID();
  const draft = `${path}.${id}`;
  await writeFile(draft, `${id}\n`, { flag: "wx" });
  try {
    // If several processes start at once, the first one wins.
    await link(draft, path);
    return id;
  } catch (error) {
    if (!hasCode(error, "EEXIST")) throw error;
    return (await read(path)) ?? id;
  } finally {
    await rm(draft);
  }
}

async function read(path: string): Promise<string | undefined> {
  return (await readFile(path, "utf8").catch(undefinedIf("ENOENT")))?.trim();
}
