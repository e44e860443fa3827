import { mkdtemp, rm } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { SandboxerError } from "@sandboxer/protocol";
import { afterEach, expect, test } from "vitest";
import type { SnapshotPayload } from "../../src/backends/backend.ts";
import { type Fault, FakeBackend, type FakeBackendOptions } from "../../src/backends/fake/index.ts";
import { newRequest } from "./contract/context.ts";
import { bash, countAbove, counter, errorCode, finish, Follower, readText, run, start } from "./contract/programs.ts";
import { meanwhile } from "../../../../test/kit/meanwhile.ts";

const closing: (() => Promise<void>)[] = [];
afterEach(async () => {
  for (const close of closing.splice(0)) await close();
});

function open(options: FakeBackendOptions = {}): FakeBackend {
  const backend = new FakeBackend(options);
  closing.push(() => backend.close());
  return backend;
}

async function folder(): Promise<string> {
  const path = await mkdtemp(join(tmpdir(), "fake-"));
  closing.push(() => rm(path, { recursive: true, force: true }));
  return path;
}

test("a fault affects the given number of calls, and leaves nothing behind", async () => {
  const backend = open();
  backend.faults.set("acquire", { error: new SandboxerError("backend_unavailable", "away"), times: 1 });
  expect(await errorCode(backend.acquire(newRequest()))).toBe("backend_unavailable");
  expect(backend.runningCount).toBe(0);
  await backend.acquire(newRequest());
  expect(backend.runningCount).toBe(1);
  backend.faults.set("probe", { error: new SandboxerError("backend_unavailable", "away") });
  expect(await backend.probe()).toMatchObject({ ok: false, summary: "away" });
});

test("a test can hold an operation", async () => {
  const backend = open();
  const handle = await backend.acquire(newRequest());
  const gate = Promise.withResolvers<void>();
  backend.faults.set("exec", { until: gate.promise });
  let started = false;
  const running = run(handle, bash("echo on")).then((finished) => ((started = true), finished));
  await meanwhile(20);
  expect(started).toBe(false);
  gate.resolve();
  expect((await running).stdout).toBe("on\n");
});

test("every holder of the sandbox sees a crash", async () => {
  const backend = open();
  const request = newRequest();
  const handle = await backend.acquire(request);
  const process = await start(handle, bash("sleep 100"));
  backend.crash(request.sandboxId, "killed by a test.", "out_of_memory");
  expect(await handle.ended).toEqual({ reason: "out_of_memory", message: "killed by a test." });
  expect(await errorCode(process.exited)).toBe("sandbox_failed");
  expect(await errorCode(handle.ping())).toBe("sandbox_failed");
  expect(backend.runningCount).toBe(0);
});

test("a save that runs out of space fails, and the sandbox keeps running", async () => {
  const backend = open();
  const handle = await backend.acquire(newRequest());
  await start(handle, counter("/workspace/count"));
  backend.faults.set("snapshot", { damage: "half_written", times: 1 });
  expect(await errorCode(handle.snapshot(await folder(), { mode: "full", leaveRunning: false }))).toBe("no_space");
  await countAbove(handle, "/workspace/count", await countAbove(handle, "/workspace/count", 0));
});

test.each(["flipped_byte", "truncated", "missing"] satisfies Fault["damage"][])(
  "a member that is damaged (%s) is refused",
  async (damage) => {
    const backend = open();
    const handle = await backend.acquire(newRequest());
    backend.faults.set("snapshot", { damage });
    const snapshot = await handle.snapshot(await folder(), { mode: "full", leaveRunning: true });
    expect(await errorCode(backend.acquireFromSnapshot(newRequest(), snapshot))).toBe("image_damaged");
    expect(backend.runningCount).toBe(1);
  },
);

test("an image of another engine or root filesystem is refused before anything happens", async () => {
  const handle = await open({ engineVersion: "1" }).acquire(newRequest());
  const snapshot = await handle.snapshot(await folder(), { mode: "full", leaveRunning: true });
  const foreign = open({ engineVersion: "2" });
  expect(await errorCode(foreign.acquireFromSnapshot(newRequest(), snapshot))).toBe("image_incompatible");
  expect(await errorCode(open().acquireFromSnapshot(newRequest({ image: "dir:/other" }), snapshot))).toBe(
    "image_incompatible",
  );
  const other: SnapshotPayload = { ...snapshot, kind: "gvisor-checkpoint" };
  expect(await errorCode(open().acquireFromSnapshot(newRequest(), other))).toBe("image_incompatible");
  expect(foreign.runningCount).toBe(0);
});

test("limits of processes, disk and files are enforced", async () => {
  const backend = open();
  const handle = await backend.acquire(newRequest({ resources: { processes: 2, diskBytes: 1000, fileBytes: 600 } }));
  const forked = await run(handle, bash("sleep 100 & sleep 100 & echo after"));
  expect(forked).toMatchObject({ stdout: "after\n", stderr: "bash: fork: Resource temporarily unavailable\n" });
  await start(handle, bash("sleep 100"));
  expect(await errorCode(start(handle, bash("echo too many")))).toBe("limit_reached");
  await handle.files.write("/workspace/a", Buffer.alloc(600));
  expect(await errorCode(handle.files.write("/workspace/b", Buffer.alloc(601)))).toBe("limit_reached");
  expect(await errorCode(handle.files.write("/workspace/b", Buffer.alloc(401)))).toBe("no_space");
});

test("a stopped sandbox is resumed with its files, a deleted one is not", async () => {
  const backend = open();
  const request = newRequest();
  const first = await backend.acquire(request);
  await run(first, bash("echo kept > file"));
  await first.stop();
  const second = await backend.tryResume(request);
  if (second === undefined) throw new Error("It was not there.");
  expect(await readText(second, "/workspace/file")).toBe("kept\n");
  expect((await backend.tryResume(request))?.sandboxId).toBe(request.sandboxId);
  await second.destroy();
  expect(await backend.tryResume(request)).toBeUndefined();
});

test("a loop continues in the middle of its sleep, and its time stops meanwhile", async () => {
  const backend = open();
  const handle = await backend.acquire(newRequest());
  const process = await start(handle, bash("for i in $(seq 1 3); do echo $i; sleep 0.1; done; echo over"), {
    key: "loop",
  });
  await new Follower(process, { acknowledge: false }).until("1\n");
  const snapshot = await handle.snapshot(await folder(), { mode: "full", leaveRunning: false });
  await handle.destroy();
  await meanwhile(200);
  const restored = await open().acquireFromSnapshot(newRequest(), snapshot);
  const [loop] = await restored.processes();
  if (loop === undefined) throw new Error("The loop is gone.");
  expect((await finish(loop)).stdout).toBe("1\n2\n3\nover\n");
});

test("a backend refuses unsupported requests", async () => {
  const backend = open({ capabilities: { snapshot: "none", filesystemSnapshot: false, pty: false, connect: false } });
  const handle = await backend.acquire(newRequest());
  const into = await folder();
  expect(await errorCode(handle.snapshot(into, { mode: "full", leaveRunning: true }))).toBe("not_supported");
  expect(await errorCode(handle.snapshot(into, { mode: "filesystem", leaveRunning: true }))).toBe("not_supported");
  expect(await errorCode(start(handle, bash("echo"), { pty: { rows: 1, columns: 1 } }))).toBe("not_supported");
  expect(await errorCode(handle.connect(80))).toBe("not_supported");
});
