import { execFile } from "node:child_process";
import { promisify } from "node:util";

/**
 * Whether the engine can start a restored sandbox while it still loads its memory, so that its first answer does not wait
 * for all of it. It keeps the image's files open until it is done, so these may go meanwhile.
 */
export async function loadsInBackground(enginePath: string): Promise<boolean> {
  try {
    const { stdout, stderr } = await promisify(execFile)(enginePath, ["help", "restore"], { timeout: 10_000 });
    return /^\s*-background\b/m.test(`${stdout}\n${stderr}`);
  } catch {
    return false;
  }
}
