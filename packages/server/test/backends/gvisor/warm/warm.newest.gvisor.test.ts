import { readdirSync, readFileSync } from "node:fs";
import { expect, test } from "vitest";
import { newRequest } from "../../contract/context.ts";
import { bash, eventually, python, run } from "../../contract/programs.ts";
import { describeGvisor } from "../support/describe-gvisor.ts";
import { MIB } from "../support/open-backend.ts";
import { WarmLab } from "./warm-lab.ts";

describeGvisor("sandboxes that are started ahead of the need", (engine) => {
  test("a prepared sandbox is given out as the sandbox that was requested", async () => {
    const lab = await WarmLab.open(engine);
    const handle = await lab.warm({ env: { GREETING: "hello" } });
    const request = newRequest({ env: { GREETING: "other" } });
    await lab.untilReady(1);
    const other = await lab.take(request);
    expect(other.sandboxId).toBe(request.sandboxId);
    const facts = bash('echo "$(hostname) $GREETING $(cat /run/sandboxer/generation) [$(cat /etc/machine-id)] $(pwd)"');
    expect((await run(other, facts)).stdout).toBe(`sandbox-${request.sandboxId.slice(0, 8)} other 0 [] /workspace\n`);
    expect((await run(handle, facts)).stdout).toContain(`sandbox-${handle.sandboxId.slice(0, 8)} hello 0 [] `);
    await Promise.all([handle.destroy(), other.destroy()]);
  });

  test("it does not differ from a sandbox that was started on request", async () => {
    const lab = await WarmLab.open(engine);
    const facts = python(`
import os, resource
print(sorted(os.listdir("/")), os.listdir("/workspace"), sorted(os.listdir("/run/sandboxer")))
print(sorted(name for name in os.listdir("/proc") if name.isdigit()), os.getpid(), os.getuid(), sorted(os.environ))
print([resource.getrlimit(limit) for limit in (resource.RLIMIT_NPROC, resource.RLIMIT_FSIZE, resource.RLIMIT_NOFILE)])
print(open("/proc/meminfo").readline(), open("/proc/mounts").read())
`);
    const [fresh, taken] = [await lab.acquire({ resources: { processes: 200 } }), await lab.warm()];
    const withLimits = await lab.warm({ resources: { processes: 200 } }, "key:1");
    const [coldText, warmText] = [(await run(fresh, facts)).stdout, (await run(withLimits, facts)).stdout];
    expect(warmText).toBe(coldText);
    expect(warmText).toContain("(200, 200)");
    expect((await run(taken, facts)).stdout).toContain("(256, 256)");
    await Promise.all([fresh.destroy(), taken.destroy(), withLimits.destroy()]);
  });

  test("two pooled sandboxes have nothing in common", async () => {
    const lab = await WarmLab.open(engine);
    await lab.acquire();
    const first = await lab.warm();
    const second = await lab.warm();
    await run(first, bash("echo mine > /workspace/file; echo mine > /tmp/file"));
    expect((await run(second, bash("ls -A /workspace /tmp; hostname"))).stdout).not.toMatch(/file/);
    const random = python("import os, random, uuid; print(os.urandom(16).hex(), random.random(), uuid.uuid4())");
    const texts = await Promise.all([first, second].map(async (handle) => (await run(handle, random)).stdout));
    expect(new Set(texts.join(" ").trim().split(/\s+/)).size).toBe(6);
    await Promise.all([first.destroy(), second.destroy()]);
  });

  test("its limits are enforced, and it is saved and restored like any other", async () => {
    const lab = await WarmLab.open(engine);
    const spec = { resources: { memoryBytes: 128 * MIB } };
    const handle = await lab.warm(spec, "key:1");
    await run(handle, bash("echo kept > /workspace/file"));
    const restored = await lab.restore(handle, spec);
    expect((await run(restored, bash("cat /workspace/file /run/sandboxer/generation; hostname"))).stdout).toBe(
      `kept\n1\nsandbox-${restored.sandboxId.slice(0, 8)}\n`,
    );
    await restored.destroy();
    const hungry = run(handle, python("held = [b'x' * 2 ** 20 for _ in range(1000)]; print('held')"));
    const [end, finished] = await Promise.all([Promise.race([handle.ended, hungry]), hungry.catch(() => undefined)]);
    expect(JSON.stringify([end, finished?.stdout])).not.toContain("held");
    await handle.destroy();
  });

  test("a sandbox that was prepared for one caller is given to no other", async () => {
    const lab = await WarmLab.open(engine);
    const spec = { resources: { processes: 100 } };
    await (await lab.acquire(spec, "key:1")).destroy();
    await lab.untilReady(1);
    const before = lab.figures;
    await (await lab.acquire(spec, "key:2")).destroy();
    expect(lab.figures).toMatchObject({ handedOut: before.handedOut, missed: before.missed + 1 });
    // Without a name nothing is kept for or given to anyone.
    await (await lab.acquire(spec)).destroy();
    expect(lab.figures).toMatchObject({ handedOut: before.handedOut, missed: before.missed + 1 });
    await (await lab.acquire(spec, "key:1")).destroy();
    expect(lab.figures.handedOut).toBe(before.handedOut + 1);
  });

  test("a sandbox that dozes meanwhile is ready for the caller", async () => {
    const lab = await WarmLab.open(engine, { dozeAfterMs: 50, heartbeatMs: 2_000 });
    await (await lab.acquire()).destroy();
    await lab.untilReady(1);
    const [kernel] = kernelPids(lab.runDirectory.path);
    await eventually(() => isStopped(kernel!), "a kernel that is stopped");
    const handle = await lab.acquire();
    expect((await run(handle, bash("echo awake"))).stdout).toBe("awake\n");
    expect(lab.figures).toMatchObject({ handedOut: 1, failed: 0 });
  });

  test.each([
    ["has died", "SIGKILL"],
    ["does not answer", "SIGSTOP"],
  ] as const)("a sandbox that %s is thrown away, and the caller gets a new one", async (_, signal) => {
    const lab = await WarmLab.open(engine);
    await (await lab.acquire()).destroy();
    await lab.untilReady(1);
    const [kernel, ...others] = kernelPids(lab.runDirectory.path);
    expect(others).toEqual([]);
    process.kill(kernel!, signal);
    if (signal === "SIGKILL") await eventually(() => lab.figures.failed === 1, "a death that was noticed");
    else await eventually(() => isStopped(kernel!), "the stop");
    const handle = await lab.acquire();
    expect((await run(handle, bash("echo works"))).stdout).toBe("works\n");
    expect(lab.figures).toMatchObject({ handedOut: 0, missed: 2, failed: 1 });
    await handle.destroy();
  });

  test("when the backend prepares no more, nothing is left of them", async () => {
    const lab = await WarmLab.open(engine);
    await (await lab.acquire({ resources: { processes: 50 } }, "key:9")).destroy();
    await lab.untilReady(1);
    await lab.backend.stopPreparing();
    expect(lab.figures).toMatchObject({ ready: 0, preparing: 0 });
    await (await lab.acquire()).destroy();
    expect(lab.figures).toMatchObject({ ready: 0, preparing: 0 });
  });
});

function isStopped(pid: number): boolean {
  return /^\d+ \(.*\) T /.test(readFileSync(`/proc/${pid}/stat`, "utf8"));
}

/** gVisor's kernels among the processes of a server. */
function kernelPids(runDirectory: string): number[] {
  const pids = readdirSync("/proc").filter((name) => /^\d+$/.test(name));
  return pids.map(Number).filter((pid) => {
    try {
      const words = readFileSync(`/proc/${pid}/cmdline`, "utf8").split("\0");
      return words.includes("boot") && words.some((word) => word.startsWith(`--root=${runDirectory}/`));
    } catch {
      return false;
    }
  });
}
