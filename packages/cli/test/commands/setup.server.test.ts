import { existsSync } from "node:fs";
import { mkdir, writeFile } from "node:fs/promises";
import { join } from "node:path";
import { withSetupLock } from "@sandboxer/server/setup";
import { expect, test } from "vitest";
import { eventually } from "../../../../test/kit/eventually.ts";
import { temporaryFolder } from "../../../../test/kit/temporary-folder.ts";
import { runProgram } from "../../src/program.ts";
import { fakeIo } from "../support/fake-io.ts";

test("a server can start while the newest engine is being built", async () => {
  const folder = await temporaryFolder();
  const [cacheDirectory, searchPath] = [join(folder, "cache"), join(folder, "bin")];
  await mkdir(searchPath);
  const go = `#!/bin/sh\necho > ${folder}/building\nwhile [ ! -e ${folder}/done ]; do /bin/sleep 0.05; done\nexit 1\n`;
  await writeFile(join(searchPath, "go"), go, { mode: 0o755 });
  const io = fakeIo({ PATH: searchPath }, { homeDirectory: folder });
  const building = runProgram(["setup", "--newest", "--cache-directory", cacheDirectory], io);
  try {
    await eventually("the build has begun", () => existsSync(join(folder, "building")));
    // As at the start of a server.
    const waits: string[] = [];
    const report = ({ message }: { readonly message: string }): void => void waits.push(message);
    await withSetupLock({ cacheDirectory, searchPath, platform: "auto", report }, async () => {});
    expect(waits).toEqual([]);
  } finally {
    await writeFile(join(folder, "done"), "");
  }
  expect(await building).not.toBe(0);
  expect(io.err()).toContain("go install");
});
