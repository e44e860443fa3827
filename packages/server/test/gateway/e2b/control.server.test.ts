import { Sandbox, SandboxNotFoundError } from "e2b";
import { expect, test } from "vitest";
import { startForE2b } from "./sdk.ts";

const MINUTE = 60_000;

test("a sandbox is created, found, listed and killed", async () => {
  const server = await startForE2b();
  const sandbox = await Sandbox.create({ metadata: { team: "ml" }, envs: { A: "1" }, timeoutMs: MINUTE });
  const info = await sandbox.getInfo();
  expect(info).toMatchObject({ sandboxId: sandbox.sandboxId, templateId: "base", state: "running" });
  expect(info.metadata).toEqual({ team: "ml" });
  expect(info.endAt.getTime() - Date.now()).toBeLessThanOrEqual(MINUTE);
  expect(await sandbox.isRunning()).toBe(true);
  expect(sandbox.getHost(3000)).toBe(`3000-${sandbox.sandboxId}.localhost:${new URL(server.httpUrl).port}`);
  const live = await server.live(sandbox.sandboxId);
  expect(live.facts.spec.env).toEqual({ A: "1" });
  expect(await Sandbox.kill(sandbox.sandboxId)).toBe(true);
  expect(await Sandbox.kill(sandbox.sandboxId)).toBe(false);
  await expect(Sandbox.getInfo(sandbox.sandboxId)).rejects.toBeInstanceOf(SandboxNotFoundError);
  await expect(Sandbox.connect(sandbox.sandboxId)).rejects.toBeInstanceOf(SandboxNotFoundError);
  expect(await sandbox.isRunning()).toBe(false);
});

test("a sandbox is deleted when its time ends, and paused with onTimeout pause", async () => {
  await startForE2b();
  const killed = await Sandbox.create();
  const paused = await Sandbox.create({ lifecycle: { onTimeout: "pause" } });
  await Promise.all([killed.setTimeout(0), paused.setTimeout(0)]);
  await expect.poll(async () => (await paused.getInfo()).state).toBe("paused");
  await expect.poll(() => Sandbox.getInfo(killed.sandboxId).catch((error: Error) => error.name)).toMatch(/NotFound/);
  const again = await Sandbox.connect(paused.sandboxId, { timeoutMs: MINUTE });
  const info = await again.getInfo();
  expect(info.state).toBe("running");
  expect(info.lifecycle).toEqual({ autoResume: false, onTimeout: "pause" });
  expect(info.endAt.getTime()).toBeGreaterThan(Date.now());
});

test("a paused sandbox is kept past its timeout, and connect resumes it with a new one", async () => {
  await startForE2b();
  // On a busy machine the timeout may end before the pause.
  let timeoutMs = 1_000;
  let sandbox = await Sandbox.create({ timeoutMs });
  while (!(await sandbox.pause().catch(() => false))) {
    timeoutMs *= 2;
    sandbox = await Sandbox.create({ timeoutMs });
  }
  expect(await sandbox.pause()).toBe(false);
  expect(await sandbox.isRunning()).toBe(false);
  const endMs = Date.now() + timeoutMs + 500;
  await expect.poll(() => Date.now()).toBeGreaterThan(endMs);
  expect((await sandbox.getInfo()).state).toBe("paused");
  await sandbox.connect({ timeoutMs: MINUTE });
  expect(await sandbox.isRunning()).toBe(true);
  const { endAt } = await sandbox.getInfo();
  await sandbox.connect({ timeoutMs: 1_000 });
  expect((await sandbox.getInfo()).endAt).toEqual(endAt);
});

test("a pause without memory ends the programs and keeps the files", async () => {
  const server = await startForE2b();
  const sandbox = await Sandbox.create();
  const { handle } = await server.live(sandbox.sandboxId);
  await handle.files.write("/workspace/kept", Buffer.from("kept"));
  await handle.exec({ key: "sleeper", argv: ["sleep", "1000"] });
  expect(await sandbox.pause({ keepMemory: false })).toBe(true);
  await sandbox.connect();
  const resumed = await server.live(sandbox.sandboxId);
  expect(await resumed.handle.processes()).toEqual([]);
  expect(await resumed.handle.files.stat("/workspace/kept")).toMatchObject({ sizeBytes: 4 });
  // The server's own capture is none of the client's snapshots.
  expect(await Sandbox.listSnapshots({ sandboxId: sandbox.sandboxId }).nextItems()).toEqual([]);
});

test("a pause at the end of its time without memory ends the programs and keeps the files", async () => {
  const server = await startForE2b();
  const sandbox = await Sandbox.create({ lifecycle: { onTimeout: { action: "pause", keepMemory: false } } });
  const { handle } = await server.live(sandbox.sandboxId);
  await handle.files.write("/workspace/kept", Buffer.from("kept"));
  await handle.exec({ key: "sleeper", argv: ["sleep", "1000"] });
  await sandbox.setTimeout(0);
  await expect.poll(async () => (await sandbox.getInfo()).state).toBe("paused");
  await sandbox.connect();
  const resumed = await server.live(sandbox.sandboxId);
  expect(await resumed.handle.processes()).toEqual([]);
  expect(await resumed.handle.files.stat("/workspace/kept")).toMatchObject({ sizeBytes: 4 });
  // An explicit pause keeps them, as its caller asks.
  await resumed.handle.exec({ key: "sleeper", argv: ["sleep", "1000"] });
  await sandbox.pause();
  await sandbox.connect();
  expect(await (await server.live(sandbox.sandboxId)).handle.processes()).toHaveLength(1);
});

test("a resume without memory ends the programs, on the route of older clients too", async () => {
  const server = await startForE2b();
  for (const route of ["resume", "connect"]) {
    const { sandboxId } = await Sandbox.create();
    const { handle } = await server.live(sandboxId);
    await handle.exec({ key: "sleeper", argv: ["sleep", "1000"] });
    await Sandbox.pause(sandboxId);
    const answer = await fetch(`${server.httpUrl}/e2b/sandboxes/${sandboxId}/${route}`, {
      method: "POST",
      headers: { "content-type": "application/json" },
      body: JSON.stringify({ timeout: 60, memory: false }),
    });
    expect(answer.status).toBe(201);
    expect(await (await server.live(sandboxId)).handle.processes()).toEqual([]);
  }
});

test("a request resumes a paused sandbox with autoResume, for five minutes", async () => {
  await startForE2b();
  const sandbox = await Sandbox.create({ lifecycle: { onTimeout: "pause", autoResume: true } });
  await sandbox.setTimeout(0);
  await expect.poll(async () => (await sandbox.getInfo()).state).toBe("paused");
  expect(await sandbox.isRunning()).toBe(true);
  const { state, endAt } = await sandbox.getInfo();
  expect(state).toBe("running");
  expect(endAt.getTime() - Date.now()).toBeGreaterThan(4 * MINUTE);
});
