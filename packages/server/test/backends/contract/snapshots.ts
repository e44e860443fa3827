import { stat } from "node:fs/promises";
import { expect, test } from "vitest";
import type { SandboxHandle, SandboxProcess, SnapshotPayload } from "../../../src/backends/backend.ts";
import { type ContractContext, newRequest } from "./context.ts";
import {
  bash,
  countAbove,
  counter,
  errorCode,
  eventually,
  finish,
  Follower,
  python,
  start,
  untilStill,
} from "./programs.ts";

const COUNT = "/workspace/count";

export function snapshotContract(context: ContractContext): void {
  /** A sandbox with a background loop, a waiting program, and an exited one; none of its output was read. */
  async function busy(): Promise<SandboxHandle> {
    const handle = await context.acquire({ env: { KEPT: "yes" } });
    await start(handle, counter(COUNT), { key: "counter" });
    const waiting = await start(handle, python("x = 41\nprint('ready')\nname = input()\nprint('x is', x + 1, name)"), {
      key: "waiting",
    });
    await new Follower(waiting, { acknowledge: false }).until("ready");
    const ended = await start(handle, bash("echo unread; exit 7"), { key: "ended" });
    await ended.exited;
    await countAbove(handle, COUNT, 3);
    return handle;
  }

  test("a saved sandbox keeps running, and two copies of it run elsewhere, independently", async () => {
    const handle = await busy();
    const snapshot = await save(context, handle, true);
    const saved = await countAbove(handle, COUNT, await countAbove(handle, COUNT, 0));
    for (const member of snapshot.members) expect((await stat(member.path)).size).toBe(member.sizeBytes);

    const request = newRequest({ env: { KEPT: "yes" } });
    const elsewhere = await context.openAnother();
    const [first, second] = await Promise.all([
      elsewhere.acquireFromSnapshot(request, snapshot).then((restored) => context.keep(restored)),
      context.backend
        .acquireFromSnapshot(newRequest({ env: { KEPT: "yes" } }), snapshot)
        .then((restored) => context.keep(restored)),
    ]);
    expect(first.sandboxId).toBe(request.sandboxId);
    for (const restored of [first, second]) await checkRestored(restored);

    await first.files.write("/workspace/only-first", Buffer.from("1"));
    expect(await errorCode(second.files.stat("/workspace/only-first"))).toBe("file_not_found");
    expect(await errorCode(handle.files.stat("/workspace/only-first"))).toBe("file_not_found");
    await countAbove(handle, COUNT, saved);
    await first.destroy();
    await countAbove(second, COUNT, await countAbove(second, COUNT, 0));
  });

  test("a sandbox that is saved to be paused stays frozen, and can be resumed after all", async () => {
    const handle = await busy();
    const snapshot = await save(context, handle, false);
    await handle.thaw();
    await countAbove(handle, COUNT, await countAbove(handle, COUNT, 0));
    await save(context, handle, false);
    await handle.destroy();
    expect(await errorCode(handle.thaw())).toBe("sandbox_failed");
    const restored = context.keep(
      await context.backend.acquireFromSnapshot(newRequest({ env: { KEPT: "yes" } }), snapshot),
    );
    await checkRestored(restored);
  });

  test("three rounds of saving and restoring lose nothing", async () => {
    let handle = await context.acquire();
    await start(handle, counter(COUNT), { key: "counter" });
    let count = await countAbove(handle, COUNT, 1);
    for (let round = 0; round < 3; round++) {
      const snapshot = await save(context, handle, false);
      await handle.destroy();
      handle = context.keep(await context.backend.acquireFromSnapshot(newRequest(), snapshot));
      count = await countAbove(handle, COUNT, count);
    }
    const process = await find(handle, "counter");
    await process.signal(9, "group");
    const { stdout } = await finish(process);
    const numbers = stdout.trim().split("\n").map(Number);
    expect(numbers).toEqual(numbers.map((_, index) => index + 1));
    expect(numbers.length).toBeGreaterThanOrEqual(count);
  });

  test("a paused sandbox stays paused after a save", async () => {
    const handle = await context.acquire();
    const process = await start(handle, counter("/workspace/saved-paused"));
    const output = new Follower(process);
    await output.until("3\n");
    await handle.freeze();
    await handle.snapshot(await context.folder(), { mode: "full", leaveRunning: true });
    await untilStill(() => output.chunks.length, "the end of output");
    const before = output.chunks.length;
    await handle.thaw();
    await eventually(() => output.chunks.length > before + 3, "output after the pause");
  });

  test("a failed save leaves the sandbox unchanged", async () => {
    const handle = await context.acquire();
    await start(handle, counter(COUNT));
    for (const leaveRunning of [true, false]) {
      await expect(handle.snapshot("/dev/null/nowhere", { mode: "full", leaveRunning })).rejects.toThrow();
      await countAbove(handle, COUNT, await countAbove(handle, COUNT, 0));
    }
    await handle.ping();
  });

  test("a snapshot of another kind, or without a member, is refused", async () => {
    const handle = await context.acquire();
    const snapshot = await save(context, handle, true);
    const load = (payload: SnapshotPayload): Promise<string> =>
      errorCode(context.backend.acquireFromSnapshot(newRequest(), payload).then((restored) => context.keep(restored)));
    expect(["image_incompatible", "not_supported"]).toContain(await load({ ...snapshot, kind: "stub-metadata" }));
    expect(["image_damaged", "image_incompatible"]).toContain(await load({ ...snapshot, members: [] }));
  });
}

async function save(context: ContractContext, handle: SandboxHandle, leaveRunning: boolean): Promise<SnapshotPayload> {
  const snapshot = await handle.snapshot(await context.folder(), { mode: "full", leaveRunning });
  // A store keeps it as JSON.
  return JSON.parse(JSON.stringify(snapshot)) as SnapshotPayload;
}

async function find(handle: SandboxHandle, key: string): Promise<SandboxProcess> {
  const process = (await handle.processes()).find((candidate) => candidate.key === key);
  if (process === undefined) throw new Error(`No process with the key ${key}.`);
  return process;
}

/** The loop keeps counting, its output has no gap from the first line, and variables, stdin and the exit are kept. */
async function checkRestored(handle: SandboxHandle): Promise<void> {
  expect((await handle.processes()).map(({ key }) => key)).toEqual(["counter", "waiting", "ended"]);
  const count = await countAbove(handle, COUNT, await countAbove(handle, COUNT, 0));
  const output = new Follower(await find(handle, "counter"));
  await output.until(`\n${count}\n`);
  const numbers = output.text.trim().split("\n").map(Number);
  expect(numbers.slice(0, count)).toEqual(Array.from({ length: count }, (_, index) => index + 1));

  const waiting = await find(handle, "waiting");
  expect(waiting.exit).toBeUndefined();
  await waiting.writeStdin(Buffer.from("hello\n"));
  expect((await finish(waiting)).stdout).toBe("ready\nx is 42 hello\n");

  const ended = await find(handle, "ended");
  expect(await ended.exited).toMatchObject({ code: 7, signal: undefined });
  expect((await finish(ended)).stdout).toBe("unread\n");
}
