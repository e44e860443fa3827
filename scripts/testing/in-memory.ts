import { execFileSync } from "node:child_process";
import { mkdtempSync, rmSync, statfsSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import type { Suite } from "./suite.ts";

const TMPFS = 0x0102_1994;
/** The suites use less than 1 GiB together, most of it for packages that a test installs. */
const LEAST_BYTES = 6 * 1024 ** 3;

/**
 * Keeps the temporary files of a suite in memory if the machine has enough. On a disk the tests wait for thousands of
 * `fsync` calls. Not for real sandboxes, whose files would count as their memory.
 */
export function inMemory(suite: Suite, folder = "/dev/shm", leastBytes = LEAST_BYTES): Suite {
  return isUsable(folder, leastBytes) ? { ...suite, temporaryIn: folder } : suite;
}

/** Containers often have a small one, or one from which no program can be started. */
function isUsable(folder: string, leastBytes: number): boolean {
  let trial: string | undefined;
  try {
    const { type, bavail, bsize } = statfsSync(folder);
    if (type !== TMPFS || Math.min(bavail * bsize, process.availableMemory()) < leastBytes) return false;
    trial = mkdtempSync(join(folder, "sandboxer-"));
    writeFileSync(join(trial, "program"), "#!/bin/sh\n", { mode: 0o700 });
    execFileSync(join(trial, "program"), { stdio: "ignore" });
    return true;
  } catch {
    return false;
  } finally {
    if (trial !== undefined) rmSync(trial, { recursive: true, force: true });
  }
}
