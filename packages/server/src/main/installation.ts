import { randomUUID } from "node:crypto";
import { link, mkdir, readFile, rm, writeFile } from "node:fs/promises";
import { join } from "node:path";
import { isErrno } from "@sandboxer/protocol";

/** The id of a data directory, made once. Providers mark sandboxes with it, so that each cleans up its own alone. */
export async function installationId(dataDirectory: string): Promise<string> {
  const path = join(dataDirectory, "installation");
  await mkdir(dataDirectory, { recursive: true });
  const known = await read(path);
  if (known !== undefined) return known;
  const id = randomUUID();
  const draft = `${path}.${id}`;
  await writeFile(draft, `${id}\n`, { flag: "wx" });
  try {
    // Of several processes that begin at once, one is first.
    await link(draft, path);
    return id;
  } catch (error) {
    if (!isErrno(error) || error.code !== "EEXIST") throw error;
    return (await read(path)) ?? id;
  } finally {
    await rm(draft);
  }
}

async function read(path: string): Promise<string | undefined> {
  try {
    return (await readFile(path, "utf8")).trim();
  } catch (error) {
    if (isErrno(error) && error.code === "ENOENT") return undefined;
    throw error;
  }
}
