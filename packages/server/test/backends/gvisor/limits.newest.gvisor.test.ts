import { expect, test } from "vitest";
import type { SandboxHandle } from "../../../src/backends/backend.ts";
import { bash, countAbove, counter, delay, errorCode, Follower, python, run, start } from "../contract/programs.ts";
import { describeGvisor } from "./support/describe-gvisor.ts";
import { GvisorFixture } from "./support/fixture.ts";
import { MIB } from "./support/open-backend.ts";

const RESOURCES = { memoryBytes: 128 * MIB, diskBytes: 128 * MIB, fileBytes: 1024 * MIB, processes: 64 };

const MEMORY_BOMBS: Readonly<Record<string, readonly string[]>> = {
  "one process that takes ever more": python("taken = []\nwhile True: taken.append(b'x' * (8 << 20))"),
  "many processes that take some": bash(
    `for i in $(seq 1 30); do python3 -c "taken = b'x' * (40 << 20); import time; time.sleep(30)" & done; wait`,
  ),
  "files in /tmp": bash("for i in $(seq 1 20); do head -c 50M /dev/zero > /tmp/$i; done"),
  "files in /dev/shm and /tmp": bash("for f in /dev/shm /tmp; do head -c 500M /dev/zero > $f/x; done"),
  "very many empty files": python(
    "import os\nfor i in range(400_000): os.close(os.open(f'/workspace/{i:0250d}', os.O_CREAT))",
  ),
};

/** Each continues when it gets no more, and prints it. */
const PROCESS_BOMBS: Readonly<Record<string, readonly string[]>> = {
  "a shell that forks itself twice": bash(":(){ :|:& };: ; sleep 2"),
  "sleepers without end": bash("while true; do sleep 300 & done"),
  "threads without end": python(
    "import threading, time\nwhile True:\n  try: threading.Thread(target=time.sleep, args=(300,)).start()\n  except RuntimeError: print('Resource temporarily unavailable'); time.sleep(0.01)",
  ),
};

/** With its message, which helps if the end was another one. */
const OUT_OF_MEMORY = { reason: "out_of_memory", message: expect.any(String) as string };

const DISK_BOMBS: Readonly<Record<string, readonly string[]>> = {
  "one file": bash("head -c 2G /dev/zero > /workspace/one"),
  // It continues if only head was killed.
  "many files": bash("for i in $(seq 1 500); do head -c 4M /dev/zero > /workspace/$i; done"),
};

describeGvisor("limits", (engine) => {
  const fixture = new GvisorFixture(engine);
  /** runsc 20240729 has no limit of the writable layer; the server watches it. */
  const holdsDisk = !engine.version.startsWith("2024");

  let neighbour: Promise<SandboxHandle> | undefined;
  async function startNeighbour(): Promise<SandboxHandle> {
    const handle = await fixture.acquire();
    await start(handle, counter("/workspace/count", 0.25));
    return handle;
  }

  /** Beside the bombs a neighbour keeps working, and so does this process. */
  async function withNeighbour(bomb: (handle: SandboxHandle) => Promise<void>): Promise<void> {
    neighbour ??= startNeighbour();
    const [beside, handle] = await Promise.all([neighbour, fixture.acquire({ resources: RESOURCES })]);
    const residentBytes = process.memoryUsage().rss;
    try {
      await bomb(handle);
      await beside.ping();
      await countAbove(beside, "/workspace/count", await countAbove(beside, "/workspace/count", 0));
      expect(process.memoryUsage().rss - residentBytes).toBeLessThan(300 * MIB);
    } finally {
      await handle.destroy();
    }
  }

  test("the memory of a sandbox does not grow by its saved images", async () => {
    const handle = await fixture.acquire();
    const program = await start(
      handle,
      python("held = b'x' * (100 << 20); print('held'); import time; time.sleep(300)"),
    );
    await new Follower(program).until("held");
    for (let round = 0; round < 3; round++) {
      await handle.snapshot(await fixture.folder(), { mode: "full", leaveRunning: true });
    }
    expect((await handle.stats()).memoryBytes).toBeGreaterThan(100 * MIB);
    expect((await handle.stats()).memoryBytes).toBeLessThan(250 * MIB);
    await handle.destroy();
  });

  test.each(Object.entries(MEMORY_BOMBS))("memory: %s", async (_, bomb) => {
    await withNeighbour(async (handle) => {
      await Promise.race([errorCode(run(handle, bomb)), delay(15_000)]);
      // The kernel allows urgent allocations a few pages beyond the limit.
      expect((await handle.stats()).memoryBytes).toBeLessThanOrEqual(RESOURCES.memoryBytes + 97 * MIB);
      // The host's kernel chooses whether it kills gVisor's kernel or one process, and when.
      const answer = await errorCode(handle.ping());
      if (answer === "sandbox_failed") expect(await handle.ended).toEqual(OUT_OF_MEMORY);
      else expect(answer).toBe("no error");
    });
  });

  test.each(Object.entries(PROCESS_BOMBS))("processes: %s", async (_, bomb) => {
    await withNeighbour(async (handle) => {
      const process = await start(handle, bomb);
      const output = new Follower(process);
      await output.until("Resource temporarily unavailable");
      await delay(300);
      expect((await handle.processTable()).length).toBeLessThanOrEqual(RESOURCES.processes + 2);
      await handle.ping();
      for (let round = 0; round < 50 && (await handle.processTable()).length > 0; round++) {
        const pids = (await handle.processTable()).map(({ pid }) => pid);
        await process.signal(9, "group").catch(() => {});
        await run(handle, ["kill", "-9", ...pids.map(String)]).catch(() => {});
      }
      await handle.destroy();
      await output.ended.catch(() => undefined);
    });
  });

  test.each(Object.entries(DISK_BOMBS))("disk: %s", async (_, bomb) => {
    await withNeighbour(async (handle) => {
      const { exit } = await run(handle, bomb);
      const { diskBytes } = await handle.stats();
      if (holdsDisk) {
        expect(exit).toMatchObject({ code: 1, signal: undefined });
        expect(diskBytes).toBeLessThan(RESOURCES.diskBytes + 16 * MIB);
      } else {
        expect(exit).toMatchObject({ code: undefined, signal: 9 });
        expect(diskBytes).toBeGreaterThan(RESOURCES.diskBytes);
        expect(diskBytes).toBeLessThan(RESOURCES.diskBytes + 400 * MIB);
      }
      expect((await run(handle, bash("rm -f /workspace/*; echo cleared"))).stdout).toBe("cleared\n");
      expect((await run(handle, bash("echo small > /workspace/small; cat /workspace/small"))).stdout).toBe("small\n");
    });
  });

  test.runIf(holdsDisk)(
    "df shows the disk limit, also after a restore, and a full disk can be used again",
    async () => {
      const sizeAt = async (handle: SandboxHandle): Promise<number> =>
        Number((await run(handle, bash("df -B1 --output=size /workspace | tail -1"))).stdout);
      const handle = await fixture.acquire({ resources: RESOURCES });
      expect(await sizeAt(handle)).toBe(RESOURCES.diskBytes);
      const full = "head -c 1G /dev/zero > /workspace/full; rm /workspace/full";
      const { stdout, exit } = await run(handle, bash(`for i in $(seq 1 4); do ${full}; done 2>/dev/null; echo on`));
      expect([stdout, exit.code]).toEqual(["on\n", 0]);
      const restored = await fixture.restore(await fixture.save(handle), { resources: RESOURCES });
      expect(await sizeAt(restored)).toBe(RESOURCES.diskBytes);
      await Promise.all([handle.destroy(), restored.destroy()]);
    },
  );

  test("a sparse file uses no disk, and is too large for a snapshot of files", async () => {
    const handle = await fixture.acquire({ resources: RESOURCES });
    expect((await run(handle, bash("truncate -s 1G /workspace/sparse; echo $?"))).stdout).toBe("0\n");
    await delay(600);
    expect((await handle.stats()).diskBytes).toBeLessThan(64 * MIB);
    const saving = handle.snapshot(await fixture.folder(), { mode: "filesystem", leaveRunning: true });
    expect(await errorCode(saving)).toBe("too_large");
    expect((await run(handle, bash("echo on"))).stdout).toBe("on\n");
    await handle.destroy();
  });

  test("the size of a file and the number of open files are limited", async () => {
    const handle = await fixture.acquire({ resources: { ...RESOURCES, fileBytes: 8 * MIB } });
    const write =
      "import signal, os\nsignal.signal(signal.SIGXFSZ, signal.SIG_IGN)\nf = open('/workspace/large', 'wb', 0)\n";
    const large = await run(
      handle,
      python(`${write}f.write(b'x' * (8 << 20))\ntry: f.write(b'x')\nexcept OSError as e: print(os.strerror(e.errno))`),
    );
    expect(large.stdout).toBe("File too large\n");
    const open =
      "import os\nn = 0\ntry:\n  while True: os.open('/dev/null', 0); n += 1\nexcept OSError as e: print(n > 1000, os.strerror(e.errno))";
    expect((await run(handle, python(open))).stdout).toBe("True Too many open files\n");
    await handle.destroy();
  });

  test("unread output costs neither side memory", async () => {
    await withNeighbour(async (handle) => {
      const printers = await Promise.all(
        Array.from({ length: 8 }, () => start(handle, bash("yes $RANDOM$RANDOM$RANDOM"))),
      );
      await delay(1_500);
      expect((await handle.stats()).memoryBytes).toBeLessThan(RESOURCES.memoryBytes);
      for (const printer of printers) expect(printer.exit).toBeUndefined();
      await handle.ping();
    });
  });

  test("the share of the CPU is enforced", async () => {
    const handle = await fixture.acquire({ resources: { ...RESOURCES, cpus: 0.25 } });
    await Promise.all([1, 2].map(() => start(handle, bash("while true; do :; done"))));
    // Longer than the measured time, however long the calls take; on a busy machine it gets less.
    const [startMs, beforeMs] = [performance.now(), (await handle.stats()).cpuMs];
    const usedMs = async (): Promise<number> => (await handle.stats()).cpuMs - beforeMs;
    await expect.poll(usedMs, { timeout: 90_000 }).toBeGreaterThan(500);
    expect((await usedMs()) / (performance.now() - startMs)).toBeLessThan(0.25 * 1.6);
    await handle.destroy();
  });
});
