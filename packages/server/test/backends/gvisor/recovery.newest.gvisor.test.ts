import { spawn, type ChildProcess } from "node:child_process";
import { randomUUID } from "node:crypto";
import { once } from "node:events";
import { mkdirSync, readdirSync } from "node:fs";
import { join } from "node:path";
import { createInterface } from "node:readline";
import { expect, test } from "vitest";
import type { SandboxHandle } from "../../../src/backends/backend.ts";
import { recoverRunDirectories, RunDirectory } from "../../../src/backends/gvisor/run-directory.ts";
import { bash, countAbove, counter, delay, eventually, run, start } from "../contract/programs.ts";
import { describeGvisor } from "./support/describe-gvisor.ts";
import { GvisorFixture } from "./support/fixture.ts";
import { NOTHING, serverLeftovers } from "./support/leftovers.ts";

const DOOMED_SERVER = new URL("support/doomed-server.ts", import.meta.url).pathname;

interface Doomed {
  readonly child: ChildProcess;
  readonly path: string;
  readonly cgroupPath: string;
  readonly instanceId: string;
  /** When the next piece of work begins. */
  next(): Promise<void>;
}

describeGvisor("after a server was killed", (engine) => {
  let runParent = "";
  let cacheDirectory = "";
  const fixture = new GvisorFixture(engine, async () => {
    [runParent, cacheDirectory] = [await fixture.folder(), await fixture.folder()];
    return { runDirectory: await RunDirectory.open(runParent, randomUUID()), cacheDirectory };
  });

  let neighbour: Promise<SandboxHandle> | undefined;
  /** A busy sandbox of a live server; the same for all tests. */
  function living(): Promise<SandboxHandle> {
    neighbour ??= fixture.acquire().then(async (handle) => {
      await start(handle, counter("/workspace/count", 0.25));
      return handle;
    });
    return neighbour;
  }

  async function doomed(work: string): Promise<Doomed> {
    const child = spawn(process.execPath, [DOOMED_SERVER, runParent, cacheDirectory, work], {
      stdio: ["ignore", "pipe", "inherit"],
    });
    const lines = createInterface({ input: child.stdout })[Symbol.asyncIterator]();
    const next = async (): Promise<Record<string, string>> =>
      JSON.parse((await lines.next()).value ?? "{}") as Record<string, string>;
    const { path = "", cgroupPath = "", instanceId = "" } = await next();
    return { child, path, cgroupPath, instanceId, next: async () => void (await next()) };
  }

  test.each([
    ["create", 20],
    ["create", 120],
    ["warm", 20],
    ["warm", 300],
    ["save", 15],
    ["save", 60],
    ["save files", 0],
    ["save message", 0],
    ["save again", 0],
    ["save again", 10],
    ["save again", 40],
    ["save again", 150],
    ["restore", 30],
    ["restore", 150],
  ])(
    "in the middle of %s, after %i ms, the next one leaves nothing of it and touches no other",
    async (work, afterMs) => {
      const other = await living();
      const server = await doomed(work);
      await server.next();
      await delay(afterMs);
      server.child.kill("SIGKILL");
      await once(server.child, "exit");

      expect(await recoverRunDirectories(runParent)).toEqual([server.instanceId]);
      expect(serverLeftovers(server)).toEqual(NOTHING);
      expect(readdirSync(runParent).filter((name) => !name.startsWith("."))).toEqual([
        fixture.opened.runDirectory.instanceId,
      ]);
      await countAbove(other, "/workspace/count", await countAbove(other, "/workspace/count", 0));
      expect((await run(other, bash("echo on"))).stdout).toBe("on\n");
    },
  );

  test("a dozing sandbox ends with its server, before anybody cleans up", async () => {
    const server = await doomed("doze");
    await server.next();
    server.child.kill("SIGKILL");
    await once(server.child, "exit");
    await eventually(() => serverLeftovers(server).processes.length === 0, "the end of what dozed");
    expect(await recoverRunDirectories(runParent)).toEqual([server.instanceId]);
    expect(serverLeftovers(server)).toEqual(NOTHING);
  });

  test("servers that start at the same time clean up once, and leave live servers alone", async () => {
    const other = await living();
    const server = await doomed("create");
    await server.next();
    server.child.kill("SIGKILL");
    await once(server.child, "exit");
    const found = await Promise.all([1, 2, 3].map(() => recoverRunDirectories(runParent)));
    expect(new Set(found.flat())).toEqual(new Set([server.instanceId]));
    expect(serverLeftovers(server)).toEqual(NOTHING);
    await other.ping();
  });

  test("a folder that is just being created is left alone", async () => {
    const instanceId = randomUUID();
    mkdirSync(join(runParent, instanceId));
    expect(await recoverRunDirectories(runParent)).toEqual([]);
    await (await RunDirectory.open(runParent, instanceId)).close();
    expect(readdirSync(runParent)).not.toContain(instanceId);
    expect(await recoverRunDirectories(join(runParent, "missing"))).toEqual([]);
  });
});
