import { existsSync, readdirSync, readFileSync } from "node:fs";
import { expect, test } from "vitest";
import type { SandboxHandle } from "../../../src/backends/backend.ts";
import {
  bash,
  countAbove,
  counter,
  delay,
  errorCode,
  eventually,
  Follower,
  readText,
  run,
  start,
} from "../contract/programs.ts";
import { describeGvisor } from "./support/describe-gvisor.ts";
import { GvisorFixture } from "./support/fixture.ts";

const DOZE_AFTER_MS = 100;
/** Far more than a sandbox takes to doze off, and than the agent waits for a heartbeat. */
const LONG_MS = 1_500;
const HEARTBEAT_MS = 600;
const STOPPED = "T";

interface Facts {
  readonly state: string;
  readonly ticks: number;
}

describeGvisor("doze", (engine) => {
  const fixture = new GvisorFixture(engine, async () => ({
    dozeAfterMs: DOZE_AFTER_MS,
    heartbeatMs: HEARTBEAT_MS,
  }));

  const dozes = (handle: SandboxHandle): Promise<void> => eventually(() => handle.dozing === true, "a doze");

  async function dozing(): Promise<SandboxHandle> {
    const handle = await fixture.acquire();
    await run(handle, bash("echo kept > /workspace/kept; (sleep 0.2 &)"));
    await dozes(handle);
    return handle;
  }

  const kernels = (): number[] => kernelsOf(fixture.opened.runDirectory.path);

  test("an idle sandbox uses no CPU, and runs the next command as usual", async () => {
    const handle = await dozing();
    const [pid = 0] = kernels();
    // The signal may still be in flight when it is reported as dozing.
    await stopped(pid);
    const before = factsOf(pid);
    // Longer than the heartbeat: a dozing sandbox does not miss it. Reading its usage wakes nobody.
    await delay(LONG_MS);
    expect((await handle.stats()).memoryBytes).toBeGreaterThan(0);
    expect([factsOf(pid), handle.dozing]).toEqual([before, true]);
    expect((await run(handle, bash("cat /workspace/kept; sleep 0.3; echo on"))).stdout).toBe("kept\non\n");
    await dozes(handle);
    expect(await readText(handle, "/workspace/kept")).toBe("kept\n");
    await dozes(handle);
    await handle.ping();
    await handle.destroy();
    await fixture.expectNothingLeft();
  });

  test("running processes keep it awake, known to the server or not", async () => {
    const handle = await fixture.acquire();
    const known = await start(handle, counter("/workspace/known"));
    await delay(LONG_MS);
    expect(handle.dozing).toBe(false);
    const before = await countAbove(handle, "/workspace/known", 0);
    await known.signal(9, "group");
    await known.exited;
    expect(before).toBeGreaterThan(0);
    await run(
      handle,
      bash("setsid bash -c 'while true; do date +%s%N > /workspace/daemon; sleep 0.05; done' &> /dev/null &"),
    );
    await delay(LONG_MS);
    expect(handle.dozing).toBe(false);
    await run(handle, bash("pkill -9 setsid; kill -9 -1"));
    await dozes(handle);
    await handle.destroy();
  });

  test("a dozing sandbox can be frozen, saved and resumed", async () => {
    const handle = await dozing();
    await handle.freeze();
    const [pid = 0] = kernels();
    await stopped(pid);
    expect(await errorCode(handle.ping({ signal: AbortSignal.timeout(LONG_MS) }))).not.toBe("no error");
    expect(factsOf(pid).state).toBe(STOPPED);
    const paused = await fixture.save(handle);
    await handle.thaw();
    await handle.ping();
    await dozes(handle);
    const saved = await fixture.save(handle);
    await dozes(handle);
    const files = await handle.snapshot(await fixture.folder(), { mode: "filesystem", leaveRunning: true });
    await dozes(handle);
    await handle.destroy();
    for (const snapshot of [paused, saved, files]) {
      const restored = await fixture.restore(snapshot);
      await dozes(restored);
      expect(await readText(restored, "/workspace/kept")).toBe("kept\n");
      await restored.destroy();
    }
    await fixture.expectNothingLeft();
  });

  test("a sandbox that is saved to be paused stays frozen, and dozes again when it is resumed after all", async () => {
    const handle = await dozing();
    await fixture.save(handle, false);
    const [pid = 0] = kernels();
    await stopped(pid);
    expect(await errorCode(handle.ping({ signal: AbortSignal.timeout(LONG_MS) }))).not.toBe("no error");
    expect(factsOf(pid).state).toBe(STOPPED);
    await handle.thaw();
    await dozes(handle);
    expect((await run(handle, bash("cat /workspace/kept"))).stdout).toBe("kept\n");
    await handle.destroy();
  });

  test("a paused sandbox uses no CPU either, and its processes continue afterwards", async () => {
    const handle = await fixture.acquire();
    const [pid = 0] = kernels();
    await start(handle, counter("/workspace/count"));
    await countAbove(handle, "/workspace/count", 0);
    await handle.freeze();
    await stopped(pid);
    const before = factsOf(pid);
    // Longer than the heartbeat.
    await delay(LONG_MS);
    expect(factsOf(pid)).toEqual(before);
    const snapshot = await fixture.save(handle);
    await stopped(pid);
    await handle.thaw();
    await countAbove(handle, "/workspace/count", await countAbove(handle, "/workspace/count", 0));
    await handle.destroy();
    const restored = await fixture.restore(snapshot);
    await countAbove(restored, "/workspace/count", await countAbove(restored, "/workspace/count", 0));
    await restored.destroy();
    await fixture.expectNothingLeft();
  });

  test.for(["before", "in"] as const)(
    "a sandbox that is to be frozen %s the middle of a save is frozen, and nothing continues before it is released",
    async (when) => {
      const handle = await fixture.acquire();
      const [pid = 0] = kernels();
      const process = await start(handle, counter("/workspace/count"));
      const output = new Follower(process);
      await output.until("3\n");
      const folder = await fixture.folder();
      const saving = handle.snapshot(folder, { mode: "full", leaveRunning: true });
      if (when === "in") await eventually(() => existsSync(`${folder}/image/checkpoint.img`), "the image");
      const heard = output.chunks.length;
      const pausing = handle.freeze();
      const snapshot = await saving;
      await pausing;
      await stopped(pid);
      if (when === "in") expect(output.chunks.length).toBe(heard);
      const before = { ...factsOf(pid), heard: output.chunks.length };
      await delay(LONG_MS);
      expect({ ...factsOf(pid), heard: output.chunks.length }).toEqual(before);
      await handle.thaw();
      await eventually(() => output.chunks.length > before.heard + 3, "output after the pause");
      await process.signal(9, "group");
      await output.ended;
      const numbers = output.text.trim().split("\n").map(Number);
      expect(numbers).toEqual(numbers.map((_, index) => index + 1));
      await handle.destroy();
      const restored = await fixture.restore(snapshot);
      await countAbove(restored, "/workspace/count", await countAbove(restored, "/workspace/count", 0));
      await restored.destroy();
      await fixture.expectNothingLeft();
    },
  );

  test("a sandbox that is frozen while its files are saved continues afterwards, and can be saved before", async () => {
    const handle = await fixture.acquire();
    await start(handle, counter("/workspace/count"));
    await countAbove(handle, "/workspace/count", 0);
    const saving = handle.snapshot(await fixture.folder(), { mode: "filesystem", leaveRunning: true });
    await handle.freeze();
    await saving;
    await fixture.save(handle);
    // The signal was sent; on a busy machine its effect takes a moment.
    await Promise.all(kernels().map(stopped));
    await handle.snapshot(await fixture.folder(), { mode: "filesystem", leaveRunning: true });
    await handle.thaw();
    await countAbove(handle, "/workspace/count", await countAbove(handle, "/workspace/count", 0));
    await handle.destroy();
    await fixture.expectNothingLeft();
  });

  test("a sandbox that is killed while it dozes has ended", async () => {
    const handle = await dozing();
    for (const pid of kernels()) process.kill(pid, "SIGKILL");
    expect(await handle.ended).toMatchObject({ reason: "crashed" });
    expect(await errorCode(handle.ping())).toBe("sandbox_failed");
    await fixture.expectNothingLeft();
  });
});

/** Waits for every thread: one that waits for a CPU when the others have stopped needs some to handle the signal. */
function stopped(pid: number): Promise<void> {
  const threads = (): string[] => readdirSync(`/proc/${pid}/task`).map((thread) => `/proc/${pid}/task/${thread}`);
  return eventually(() => threads().every((thread) => statOf(thread).state === STOPPED), "the stop of every thread");
}

/** The processes of gVisor's kernel of a server's sandboxes. */
function kernelsOf(runDirectory: string): number[] {
  return readdirSync("/proc")
    .filter((name) => /^\d+$/.test(name))
    .map(Number)
    .filter((pid) => {
      const words = read(`/proc/${pid}/cmdline`).split("\0");
      return words.includes("boot") && words.some((word) => word.includes(runDirectory));
    });
}

function factsOf(pid: number): Facts {
  return statOf(`/proc/${pid}`);
}

function statOf(folder: string): Facts {
  const text = read(`${folder}/stat`);
  const fields = text.slice(text.lastIndexOf(")") + 2).split(" ");
  return { state: fields[0] ?? "", ticks: Number(fields[11]) + Number(fields[12]) };
}

function read(path: string): string {
  try {
    return readFileSync(path, "utf8");
  } catch {
    return "";
  }
}
