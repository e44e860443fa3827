import { spawn } from "node:child_process";
import { once } from "node:events";
import { existsSync, writeFileSync } from "node:fs";
import { basename, join } from "node:path";
import { expect, test } from "vitest";
import { foldersHeldBy } from "../../../src/backends/gvisor/run-directory.ts";
import { acquireFileLock } from "../../../src/support/file-lock.ts";
import { temporaryFolder } from "../../../../../test/kit/temporary-folder.ts";

const FILE_LOCK = new URL("../../../src/support/file-lock.ts", import.meta.url).href;

test.skipIf(!existsSync("/proc/locks"))("a folder is held while the process with its lock is alive", async () => {
  const [here, elsewhere, free] = [await temporaryFolder(), await temporaryFolder(), await temporaryFolder()];
  writeFileSync(join(free, "lock"), "");
  const held = async (): Promise<boolean[]> => {
    const names = await foldersHeldBy("lock");
    return [here, elsewhere, free].map((folder) => names.has(basename(folder)));
  };
  const lock = await acquireFileLock(join(here, "lock"));
  const code = `import { acquireFileLock } from ${JSON.stringify(FILE_LOCK)};
    await acquireFileLock(process.argv[1]); console.log("held"); setInterval(() => {}, 1000);`;
  const other = spawn(process.execPath, ["--input-type=module", "-e", code, join(elsewhere, "lock")], {
    stdio: ["ignore", "pipe", "inherit"],
  });
  try {
    await once(other.stdout, "data");
    expect(await held()).toEqual([true, true, false]);
    await lock?.release();
    expect(await held()).toEqual([false, true, false]);
  } finally {
    other.kill("SIGKILL");
    await once(other, "exit");
  }
  expect(await held()).toEqual([false, false, false]);
});
