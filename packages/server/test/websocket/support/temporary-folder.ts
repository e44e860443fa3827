import { mkdtemp, rm } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { onTestFinished } from "vitest";

/** A folder that is gone after the test; for a store that several servers use. */
export async function temporaryFolder(): Promise<string> {
  const folder = await mkdtemp(join(tmpdir(), "sandboxer-test-"));
  onTestFinished(() => rm(folder, { recursive: true, force: true }));
  return folder;
}
