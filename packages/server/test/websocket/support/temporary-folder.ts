import { mkdtemp, rm } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { onTestFinished } from "vitest";
import { REMOVAL } from "../../store/temporary-folder.ts";

/** A folder that is gone after the test; for a store that several servers use. */
export async function temporaryFolder(): Promise<string> {
  const folder = await mkdtemp(join(tmpdir(), "sandboxer-test-"));
  onTestFinished(() => rm(folder, REMOVAL));
  return folder;
}
