import { readFile, rmdir } from "node:fs/promises";
import { join } from "node:path";
import { expect, test } from "vitest";
import { CGROUP_MOUNT, detectCgroups } from "../../../src/backends/gvisor/cgroups.ts";
import { errorCode, python, run } from "../contract/programs.ts";
import { describeGvisor } from "./support/describe-gvisor.ts";
import { GvisorFixture } from "./support/fixture.ts";
import { MIB } from "./support/open-backend.ts";

const ALL_BYTES = 400 * MIB;
const MUCH = python("taken = b'x' * (300 << 20)\nprint('has it', flush=True)\nimport time\ntime.sleep(600)");

describeGvisor("the memory of all sandboxes together", (engine) => {
  const fixture = new GvisorFixture(engine, async () => ({ allMemoryBytes: ALL_BYTES }));

  async function figure(v1Name: string, v2Name: string): Promise<number> {
    const { cgroupPath } = fixture.opened.runDirectory;
    const v2 = (await detectCgroups()) === "v2";
    const file = v2 ? join(CGROUP_MOUNT, cgroupPath, v2Name) : join(CGROUP_MOUNT, "memory", cgroupPath, v1Name);
    return Number(await readFile(file, "utf8"));
  }

  test("is limited, whatever each sandbox may use", async (context) => {
    if ((await detectCgroups()) === "none") return context.skip("cgroups cannot be written here");
    const handles = await Promise.all([fixture.acquire(), fixture.acquire()]);
    expect(await figure("memory.limit_in_bytes", "memory.max")).toBe(ALL_BYTES);
    const ends = handles.map((handle) => Promise.race([errorCode(run(handle, MUCH)), handle.ended]));
    await Promise.race(ends);
    expect(await figure("memory.max_usage_in_bytes", "memory.peak")).toBeLessThanOrEqual(ALL_BYTES + MIB);
    // The kernel chooses which one it ends; the engine of 2024 may lose both.
    await Promise.all(handles.map((handle) => handle.destroy()));
  });

  test("has its limit again after another server has removed the empty cgroup", async (context) => {
    if ((await detectCgroups()) !== "v1") return context.skip("cgroups of version 1 are needed");
    await fixture.expectNothingLeft();
    await rmdir(join(CGROUP_MOUNT, "memory", fixture.opened.runDirectory.cgroupPath));
    const handle = await fixture.acquire();
    expect(await figure("memory.limit_in_bytes", "memory.max")).toBe(ALL_BYTES);
    await handle.destroy();
  });
});
