import { mkdir } from "node:fs/promises";
import { join } from "node:path";
import { fileURLToPath } from "node:url";

/** The pictures of the README; kept by git. */
const FOLDER = fileURLToPath(new URL("../../../../docs/images", import.meta.url));

export async function pictureFile(name: string): Promise<string> {
  await mkdir(FOLDER, { recursive: true });
  return join(FOLDER, name);
}
