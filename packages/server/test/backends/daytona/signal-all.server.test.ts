import { spawn } from "node:child_process";
import { once } from "node:events";
import { chmod, mkdir, readFile, writeFile } from "node:fs/promises";
import { join } from "node:path";
import { expect, onTestFinished, test } from "vitest";
import { SIGNAL_ALL } from "../../../src/backends/daytona/interior.ts";
import { temporaryFolder } from "../../../../../test/kit/temporary-folder.ts";

/** Like busybox's, which stops at a NUL byte: it sees only the first variable of an environment. */
const GREP = `#!/bin/sh
for each; do [ ! -f "$each" ] || exit 1; done
command -p grep "$@"
`;

test("a pause stops started programs and no others, even if grep stops at the first NUL byte", async () => {
  const folder = await temporaryFolder();
  const proc = join(folder, "proc");
  const sleepers = ["PATH=/bin\0SANDBOXER_EXEC=key\0", "PATH=/bin\0OTHER=SANDBOXER_EXEC=key\0"].map(async (environ) => {
    const child = spawn("sleep", ["1000"]);
    onTestFinished(() => void child.kill("SIGKILL"));
    await once(child, "spawn");
    await mkdir(join(proc, String(child.pid)), { recursive: true });
    await writeFile(join(proc, String(child.pid), "environ"), environ);
    return child.pid;
  });
  const [started, other] = await Promise.all(sleepers);
  await writeFile(join(folder, "grep"), GREP);
  await chmod(join(folder, "grep"), 0o755);
  const script = SIGNAL_ALL.replaceAll("/proc/", `${proc}/`);
  const shell = spawn("sh", ["-c", script, "sh", "STOP"], { env: { PATH: `${folder}:${process.env["PATH"]}` } });
  expect(await once(shell, "exit")).toEqual([0, null]);
  const stateOf = async (pid: number | undefined): Promise<string | undefined> =>
    /\) (\w)/.exec(await readFile(`/proc/${pid}/stat`, "utf8"))?.[1];
  await expect.poll(() => stateOf(started)).toBe("T");
  expect(await stateOf(other)).toBe("S");
});
