import { spawn } from "node:child_process";
import { randomUUID } from "node:crypto";
import { once } from "node:events";
import { existsSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { expect, test } from "vitest";
import { CGROUP_MOUNT, detectCgroups, removeCgroups, SandboxCgroup } from "../../../src/backends/gvisor/cgroups.ts";
import { recoverRunDirectories, RunDirectory } from "../../../src/backends/gvisor/run-directory.ts";
import { temporaryFolder } from "../../../../../test/kit/temporary-folder.ts";
import { describeGvisor } from "./support/describe-gvisor.ts";

const LIMITS = { memoryBytes: 1 << 30, threads: 100, cpus: undefined };

describeGvisor("cgroups that no run directory names", () => {
  test("are removed if they are empty, and stay if they are in use or their server is alive", async (context) => {
    const version = await detectCgroups();
    if (version === "none") return context.skip("cgroups cannot be written here");
    const runParent = await temporaryFolder();
    const here = await RunDirectory.open(runParent, randomUUID());
    const [forgotten, bare, inUse, known] = [randomUUID(), randomUUID(), randomUUID(), here.instanceId];
    const place = (server: string): string =>
      join(CGROUP_MOUNT, version === "v1" ? "memory" : "", "sandboxer", server, server === bare ? "" : "sandbox");
    const sleeper = spawn("sleep", ["1000"], { stdio: "ignore" });
    await new SandboxCgroup(version, `/sandboxer/${bare}`).create(LIMITS);
    for (const server of [forgotten, known, inUse]) {
      await new SandboxCgroup(version, `/sandboxer/${server}/sandbox`).create(LIMITS);
    }
    // At once: other servers of this machine look for forgotten ones too.
    writeFileSync(join(place(inUse), "cgroup.procs"), String(sleeper.pid));
    try {
      expect(await recoverRunDirectories(runParent)).toEqual([]);
      expect([forgotten, bare, inUse, known].map((server) => existsSync(place(server)))).toEqual([
        false,
        false,
        true,
        true,
      ]);
      // A server with another data directory, while this one is slow to start a sandbox.
      await recoverRunDirectories(join(runParent, "of-another"));
      expect(existsSync(place(known))).toBe(true);
      await here.close();
      const removed = join(runParent, "removed");
      sleeper.kill("SIGKILL");
      await once(sleeper, "exit");
      await recoverRunDirectories(removed);
      expect(existsSync(place(inUse))).toBe(false);
    } finally {
      sleeper.kill("SIGKILL");
      for (const server of [forgotten, bare, inUse, known]) await removeCgroups(`/sandboxer/${server}`);
    }
  });
});
