import { mkdtemp, rm } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { onTestFinished } from "vitest";

/** A server that has ended does not wait for a write in progress, which may create a file in a folder that is being removed. */
export const REMOVAL = { recursive: true, force: true, maxRetries: 20, retryDelay: 50 } as const;

/** A fresh folder that is removed after the test. */
export async function temporaryFolder(): Promise<string> {
  const folder = await mkdtemp(join(tmpdir(), "sandboxer-test-"));
  onTestFinished(async () => await rm(folder, REMOVAL));
  return folder;
}
