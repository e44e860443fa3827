import { createWriteStream } from "node:fs";
import { readdir, stat, writeFile } from "node:fs/promises";
import { join } from "node:path";
import { pipeline } from "node:stream/promises";
import { pack } from "tar-stream";
import { beforeAll, expect, test } from "vitest";
import type { SandboxBackend, SnapshotPayload } from "../../../src/backends/backend.ts";
import { newRequest } from "../contract/context.ts";
import { bash, countAbove, counter, delay, errorCode, readText, run, start } from "../contract/programs.ts";
import { describeDocker } from "./support/describe-docker.ts";
import { DockerLab } from "./support/docker-lab.ts";
import { keyed } from "./support/open-docker.ts";

const MIB = 1024 * 1024;

describeDocker("snapshots", (service) => {
  const lab = new DockerLab(service);
  let backend: SandboxBackend;
  beforeAll(async () => {
    backend = await lab.open();
  });

  test("a save leaves no image at the engine, and a restored sandbox removes its image when it is deleted", async () => {
    const handle = await backend.acquire(keyed("saved", lab.directory));
    await run(handle, bash("head -c 3M /dev/urandom > large; md5sum large > sum"));
    const snapshot = await handle.snapshot(await lab.folder(), { mode: "filesystem", leaveRunning: true });
    expect(snapshot).toMatchObject({ kind: "docker-image-tar", members: [{ name: "image.tar" }] });
    expect((await stat(snapshot.members[0]!.path)).size).toBe(snapshot.members[0]!.sizeBytes);
    expect(snapshot.members[0]!.sizeBytes).toBeGreaterThan(3 * MIB);
    expect(await lab.snapshotImages()).toEqual([]);

    const [first, second] = await Promise.all([
      backend.acquireFromSnapshot(newRequest(), snapshot),
      backend.acquireFromSnapshot(newRequest(), snapshot),
    ]);
    const [image = ""] = await lab.snapshotImages();
    const [{ Config: config }] = JSON.parse(await lab.docker("image", "inspect", image)) as [{ Config: object }];
    expect(config).toMatchObject({ Env: ["SANDBOXER_RESYNC="] });
    // A copy is not found by the key of the saved sandbox.
    expect(await lab.containersOf("saved")).toHaveLength(1);
    expect((await run(first, bash("md5sum -c sum"))).exit.code).toBe(0);
    await first.destroy();
    expect((await run(second, bash("md5sum -c sum"))).exit.code).toBe(0);
    const again = await second.snapshot(await lab.folder(), { mode: "filesystem", leaveRunning: true });
    await second.destroy();
    expect(await lab.snapshotImages()).toEqual([]);
    const third = await backend.acquireFromSnapshot(newRequest(), again);
    expect((await run(third, bash("md5sum -c sum"))).exit.code).toBe(0);
    await Promise.all([third.destroy(), handle.destroy()]);
    expect(await lab.snapshotImages()).toEqual([]);
  });

  test("a save is streamed: it needs less memory here than its size", async () => {
    const handle = await backend.acquire(newRequest());
    // A stream needs about 70 MiB, whatever its size: a third of these bytes on top of it would show.
    await run(handle, bash("truncate -s 240M large"));
    const before = process.memoryUsage.rss();
    const snapshot = await handle.snapshot(await lab.folder(), { mode: "filesystem", leaveRunning: true });
    expect(process.memoryUsage.rss() - before).toBeLessThan(150 * MIB);
    expect(snapshot.members[0]!.sizeBytes).toBeGreaterThan(240 * MIB);
    await handle.destroy();
  });

  test("a sandbox that is saved to be paused stays frozen until it is resumed", async () => {
    const handle = await backend.acquire(newRequest());
    await start(handle, counter("/workspace/count"));
    await countAbove(handle, "/workspace/count", 2);
    const [container = ""] = await lab.containers(`label=sandboxer.sandbox-id=${handle.sandboxId}`);
    await handle.snapshot(await lab.folder(), { mode: "filesystem", leaveRunning: false });
    expect(await lab.state(container)).toBe("paused");
    await handle.thaw();
    await countAbove(handle, "/workspace/count", await countAbove(handle, "/workspace/count", 0));

    await expect(handle.snapshot("/dev/null/nowhere", { mode: "filesystem", leaveRunning: false })).rejects.toThrow();
    expect(await lab.state(container)).toBe("running");
    expect(await lab.snapshotImages()).toEqual([]);
    await handle.freeze();
    await handle.snapshot(await lab.folder(), { mode: "filesystem", leaveRunning: true });
    expect(await lab.state(container)).toBe("paused");
    await handle.destroy();
  });

  test("files can be read while processes are frozen, also in a paused sandbox, which stays paused", async () => {
    const handle = await backend.acquire(newRequest());
    await start(handle, counter("/workspace/count"));
    await countAbove(handle, "/workspace/count", 2);
    const [container = ""] = await lab.containers(`label=sandboxer.sandbox-id=${handle.sandboxId}`);
    const readTwice = async (): Promise<void> => {
      const before = await handle.files.stat("/workspace/count");
      await delay(200);
      expect(await handle.files.stat("/workspace/count")).toEqual(before);
    };
    await handle.whileFrozen!(readTwice);
    await countAbove(handle, "/workspace/count", await countAbove(handle, "/workspace/count", 0));
    await handle.freeze();
    await handle.whileFrozen!(readTwice);
    expect(await lab.state(container)).toBe("paused");
    await expect(handle.whileFrozen!(() => Promise.reject(new Error("no")))).rejects.toThrow("no");
    await handle.thaw();
    await countAbove(handle, "/workspace/count", await countAbove(handle, "/workspace/count", 0));
    await handle.destroy();
  });

  test("an engine with checkpoints turned off saves no memory, names the setting, and is not changed", async () => {
    const handle = await backend.acquire(newRequest());
    const into = await lab.folder();
    expect(backend.capabilities.snapshot).toBe("filesystem");
    await expect(handle.snapshot(into, { mode: "full", leaveRunning: false })).rejects.toMatchObject({
      code: "not_supported",
      message: expect.stringContaining('"experimental": true in its daemon.json'),
    });
    expect((await backend.probe()).details?.["full_snapshots"]).toMatch(
      /^no: the engine's experimental checkpoints are off/,
    );
    expect(await readdir(into)).toEqual([]);
    await handle.ping();
    await handle.destroy();
  });

  test("a snapshot that cannot be loaded is refused before anything is done", async () => {
    const handle = await backend.acquire(newRequest());
    const snapshot = await handle.snapshot(await lab.folder(), { mode: "filesystem", leaveRunning: true });
    await handle.destroy();
    const load = (change: Partial<SnapshotPayload>): Promise<string> =>
      errorCode(backend.acquireFromSnapshot(newRequest(), { ...snapshot, ...change }));
    const { requirements } = snapshot;
    expect(await load({ kind: "gvisor-checkpoint" })).toBe("image_incompatible");
    expect(await load({ kind: "daytona-snapshot" })).toBe("image_incompatible");
    expect(await load({ requirements: { ...requirements, architecture: "riscv64" } })).toBe("image_incompatible");
    expect(await load({ requirements: {} })).toBe("image_damaged");
    expect(await load({ members: [] })).toBe("image_damaged");
    const renamed = { ...requirements, image_name: "sandboxer-snapshot:00000000-0000-0000-0000-000000000000" };
    expect(await load({ requirements: renamed })).toBe("image_damaged");
    const damaged = join(await lab.folder(), "image.tar");
    await writeFile(damaged, "no archive".repeat(100));
    expect(await load({ members: [{ name: "image.tar", path: damaged, sizeBytes: 1000 }] })).toBe("image_damaged");
    expect(await lab.snapshotImages()).toEqual([]);
    expect(await lab.containers(`label=sandboxer.sandbox-id=${handle.sandboxId}`)).toEqual([]);
  });

  test("files of another backend are loaded into a fresh sandbox", async () => {
    const archive = pack();
    const path = join(await lab.folder(), "files.tar");
    const written = pipeline(archive, createWriteStream(path));
    const owned = { uid: 1000, gid: 1000 };
    archive.entry({ name: "workspace/odd name\n", mode: 0o640, ...owned }, "odd");
    archive.entry({ name: "workspace/link", type: "symlink", linkname: "odd name\n", ...owned });
    archive.finalize();
    await written;
    const members = [{ name: "files.tar", path, sizeBytes: (await stat(path)).size }];
    const payload: SnapshotPayload = { kind: "workspace-tar", members, requirements: {} };
    const handle = await backend.acquireFromSnapshot(newRequest(), payload);
    expect(await readText(handle, "/workspace/link")).toBe("odd");
    expect((await handle.files.stat("/workspace/odd name\n")).mode & 0o777).toBe(0o640);
    await handle.destroy();
    const bad = { ...payload, members: [{ ...members[0]!, path: "/nowhere" }] };
    await expect(backend.acquireFromSnapshot(newRequest(), bad)).rejects.toThrow();
    expect(await lab.containers("status=running")).toEqual([]);
  });

  test(`a save during writes loses nothing of ${service.image}`, async () => {
    const handle = await backend.acquire(newRequest());
    const writer = await start(handle, bash("i=0; while true; do i=$((i+1)); echo $i >> log; done"));
    await countLines(100);
    const snapshot = await handle.snapshot(await lab.folder(), { mode: "filesystem", leaveRunning: true });
    await writer.signal(9, "group");
    const restored = await backend.acquireFromSnapshot(newRequest(), snapshot);
    const numbers = (await readText(restored, "/workspace/log")).trim().split("\n").map(Number);
    expect(numbers).toEqual(numbers.map((_, index) => index + 1));
    await Promise.all([restored.destroy(), handle.destroy()]);

    async function countLines(least: number): Promise<void> {
      await run(handle, bash(`while [ "$(cat log 2> /dev/null | wc -l)" -lt ${least} ]; do sleep 0.02; done`));
    }
  });
});
