import { execFileSync } from "node:child_process";
import { mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";

export interface SmallVolume {
  readonly folder: string;
  readonly remove: () => void;
}

/** A file system of a few MiB, or why there can be none here. */
export function smallVolume(sizeBytes: number): SmallVolume | { readonly skipped: string } {
  const folder = mkdtempSync(join(tmpdir(), "sandboxer-small-"));
  try {
    execFileSync("mount", ["-t", "tmpfs", "-o", `size=${sizeBytes}`, "tmpfs", folder], { stdio: "pipe" });
  } catch (error) {
    rmSync(folder, { recursive: true });
    return { skipped: `no tmpfs can be mounted: ${error instanceof Error ? error.message.split("\n")[0] : ""}` };
  }
  return {
    folder,
    remove: () => {
      execFileSync("umount", ["-l", folder]);
      rmSync(folder, { recursive: true, force: true });
    },
  };
}
