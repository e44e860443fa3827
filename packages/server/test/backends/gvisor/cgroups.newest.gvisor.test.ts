import { spawn } from "node:child_process";
import { randomUUID } from "node:crypto";
import { existsSync } from "node:fs";
import { readFile, writeFile } from "node:fs/promises";
import { dirname, join } from "node:path";
import { expect, onTestFinished, test } from "vitest";
import { CGROUP_MOUNT, detectCgroups, removeCgroups, SandboxCgroup } from "../../../src/backends/gvisor/cgroups.ts";
import { describeGvisor } from "./support/describe-gvisor.ts";

const AT_ONCE = 100;
const PERIOD_US = 100_000;

describeGvisor("the cgroup of a sandbox", () => {
  test("has the requested share of the CPU, however many are created at once", async (context) => {
    const version = await detectCgroups();
    if (version === "none") return context.skip("cgroups cannot be written here");
    const parent = `/sandboxer-test-${randomUUID()}`;
    onTestFinished(async () => void (await removeCgroups(parent)));
    const cgroups = Array.from({ length: AT_ONCE }, (_, at) => new SandboxCgroup(version, `${parent}/${at}`));
    const shareOf = async ({ path }: SandboxCgroup): Promise<number> => {
      const file = version === "v1" ? join("cpu", path, "cpu.cfs_quota_us") : join(path, "cpu.max");
      return Number.parseInt(await readFile(join(CGROUP_MOUNT, file), "utf8"), 10) / PERIOD_US;
    };
    for (let round = 0; round < 40; round++) {
      const cpus = round % 2 === 0 ? 0.25 : 0.5;
      await Promise.all(cgroups.map((cgroup) => cgroup.create({ memoryBytes: 1 << 30, threads: 100, cpus })));
      expect(new Set(await Promise.all(cgroups.map(shareOf)))).toEqual(new Set([cpus]));
    }
  });

  test("is removed even if its last process ends long after the sandbox", async (context) => {
    const version = await detectCgroups();
    if (version === "none") return context.skip("cgroups cannot be written here");
    const cgroup = new SandboxCgroup(version, `/sandboxer-test-${randomUUID()}/sandbox`);
    onTestFinished(async () => void (await removeCgroups(dirname(cgroup.path))));
    await cgroup.create({ memoryBytes: 1 << 30, threads: 100, cpus: 1 });
    const folder = join(CGROUP_MOUNT, version === "v1" ? "memory" : "", cgroup.path);
    const late = spawn("sleep", ["600"], { stdio: "ignore" });
    onTestFinished(() => void late.kill("SIGKILL"));
    await writeFile(join(folder, "cgroup.procs"), String(late.pid));
    await cgroup.remove();
    expect(existsSync(folder)).toBe(true);
    late.kill("SIGKILL");
    await expect.poll(() => existsSync(folder)).toBe(false);
  });
});
