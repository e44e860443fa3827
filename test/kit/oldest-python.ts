import { spawnSync } from "node:child_process";
import { globSync } from "node:fs";
import { homedir } from "node:os";
import { dirname, join } from "node:path";

const SAY_PATH = "import sys; assert sys.version_info[:2] == (3, 8); print(sys.executable)";

/** The folder with a `python3` of the oldest supported version: in the `PATH`, or one that pyenv has installed. */
export function oldestPython(): string | undefined {
  const installed = join(process.env["PYENV_ROOT"] ?? join(homedir(), ".pyenv"), "versions");
  for (const program of ["python3.8", ...globSync(join(installed, "3.8.*/bin/python3"))]) {
    const { status, stdout } = spawnSync(program, ["-c", SAY_PATH], { encoding: "utf8" });
    if (status === 0) return dirname(stdout.trim());
  }
  return undefined;
}
