import { type ChildProcess, spawn } from "node:child_process";
import { randomUUID } from "node:crypto";
import type { SandboxBackend } from "../../../src/backends/backend.ts";
import type { Fate } from "../../../src/backends/instance-folder.ts";
import { once } from "node:events";
import { readdir } from "node:fs/promises";
import { join } from "node:path";
import type { Readable } from "node:stream";
import { afterEach, beforeEach, describe, expect, onTestFinished, test } from "vitest";
import { openDaytonaBackend, recoverDaytona } from "../../../src/backends/daytona/index.ts";
import { Secret } from "../../../src/secrets/secret.ts";
import { HttpClient } from "../../gateway/http/support.ts";
import { ServerProcess } from "../../../../../test/kit/server/server-process.ts";
import { temporaryFolder } from "../../../../../test/kit/temporary-folder.ts";
import { openBackend, openServer, QUICK } from "./lab.ts";
import { requestFor } from "./requests.ts";
import type { DaytonaServer } from "./server/daytona-server.ts";

const DOOMED = new URL("doomed-process.ts", import.meta.url).pathname;
const HOUR_MS = 3_600_000;

/** The servers here are separate processes. */
describe("the leftovers of dead servers at Daytona", () => {
  let server: DaytonaServer;
  let directory: string;
  beforeEach(async () => {
    server = await openServer();
    directory = await temporaryFolder();
  });
  afterEach(() => server.close());

  const options = () => ({
    apiKey: () => Promise.resolve(new Secret("daytona-api-key", server.apiKey)),
    apiUrl: server.apiUrl,
    toolboxUrl: server.toolboxUrl,
    timing: QUICK,
  });
  const recover = (owner = "here", fate: Fate = "free") =>
    recoverDaytona(options(), { directory, owner }, async () => fate);
  const record = (vendorId: string) => server.plane.find(vendorId).record;
  const state = (vendorId: string) => record(vendorId).state;

  async function openLiving(): Promise<SandboxBackend> {
    const { backend } = await openDaytonaBackend(options(), { directory, owner: "here", instanceId: randomUUID() });
    onTestFinished(() => backend.close());
    return backend;
  }

  /** A process that creates a sandbox and is killed. */
  async function leave(keyed: boolean, owner = "here"): Promise<{ vendorId: string; instanceId: string }> {
    const instanceId = randomUUID();
    const { apiKey, apiUrl, toolboxUrl } = server;
    const order = { place: { apiKey, apiUrl, toolboxUrl }, directory, owner, instanceId, keyed };
    const child = spawn(process.execPath, [DOOMED, JSON.stringify(order)], { stdio: ["ignore", "pipe", "inherit"] });
    const vendorId = await firstLine(child);
    const exited = once(child, "exit");
    child.kill("SIGKILL");
    await exited;
    expect(state(vendorId)).toBe("started");
    return { vendorId, instanceId };
  }

  test("its running sandboxes are stopped, not deleted; those of live servers, other owners and no owner keep running", async () => {
    const living = await openLiving();
    const lived = await vendorIdOf(living.acquire(requestFor()));
    const others = await openBackend(server).acquire(requestFor({ owner: "someone else" }));
    const { identity: _, ...unmarked } = requestFor();
    const foreign = await vendorIdOf(openBackend(server).acquire(unmarked));
    const [keyed, plain] = [await leave(true), await leave(false)];

    expect((await recover()).toSorted()).toEqual([keyed.instanceId, plain.instanceId].toSorted());
    await expect.poll(() => [state(keyed.vendorId), state(plain.vendorId)]).toEqual(["stopped", "stopped"]);
    for (const id of [lived, foreign, await vendorIdOf(Promise.resolve(others))]) expect(state(id)).toBe("started");
    expect(server.seen("DELETE", /./)).toEqual([]);
    expect(await recover()).toEqual([]);
    expect(await readdir(join(directory, "instances"))).toHaveLength(1);
  });

  test("a sandbox that a live server took over belongs to that server, even if another created it", async () => {
    const { vendorId, instanceId } = await leave(true);
    const living = await openLiving();
    expect(await vendorIdOf(living.tryResume(requestFor()))).toBe(vendorId);
    expect(record(vendorId).labels["sandboxer.instance"]).not.toBe(instanceId);
    expect(await recover()).toEqual([instanceId]);
    expect(state(vendorId)).toBe("started");
  });

  test("a sandbox that another installation resumed belongs to that one, and the first leaves it alone", async () => {
    const { vendorId } = await leave(false);
    const place = { directory: await temporaryFolder(), owner: "there", instanceId: randomUUID() };
    const { backend } = await openDaytonaBackend(options(), place);
    onTestFinished(() => backend.close());
    const { identity: _, ...request } = requestFor();
    const sandboxId = record(vendorId).labels["sandboxer.sandbox-id"] ?? "";
    expect(await vendorIdOf(backend.tryResume({ ...request, sandboxId }))).toBe(vendorId);
    await recover();
    expect(state(vendorId)).toBe("started");
    expect(server.seen("POST", /\/stop$/)).toEqual([]);
    expect(record(vendorId).labels["sandboxer.owner"]).toBe("there");
  });

  test("a process that died and was forgotten before Daytona had finished counts as dead", async () => {
    const { vendorId } = await leave(true);
    await recover();
    await expect.poll(() => state(vendorId)).toBe("stopped");
    await server.plane.find(vendorId).start();
    await recover();
    await expect.poll(() => state(vendorId)).toBe("stopped");
  });

  test("a sandbox that was stopped for longer than its idle time is deleted, unless it belongs to another owner", async () => {
    const backend = await openLiving();
    const ids: string[] = [];
    for (const identity of [{}, { idleTtlMs: 3 * HOUR_MS }, { owner: "someone else" }]) {
      const handle = await backend.acquire(requestFor({ key: randomUUID(), idleTtlMs: HOUR_MS, ...identity }));
      ids.push(await vendorIdOf(Promise.resolve(handle)));
      await handle.stop();
      record(ids.at(-1) ?? "").updatedAt = new Date(Date.now() - 2 * HOUR_MS).toISOString();
    }
    await recover();
    const states = server.plane.sandboxes.map(({ record: { state: found } }) => found);
    expect(states).toEqual(["destroyed", "stopped", "stopped"]);
  });

  test("a sandbox that stops by itself or cannot be changed now is no failure; an outage is, and keeps all marks", async () => {
    const { instanceId } = await leave(true);
    server.interfere = ({ path }) => (path.endsWith("/stop") ? { status: 503, json: { message: "away" } } : undefined);
    await expect(recover()).rejects.toMatchObject({ code: "backend_unavailable" });
    server.interfere = ({ path }) =>
      path.endsWith("/stop") ? { status: 409, json: { message: "state change in progress" } } : undefined;
    expect(await recover()).toEqual([instanceId]);
  });

  test("a server that starts after a killed one recovers its sandbox, which then has no owner", async () => {
    const dataHome = await temporaryFolder();
    const place = ["--daytona-api-url", server.apiUrl, "--daytona-toolbox-url", server.toolboxUrl];
    const start = (backend: string) =>
      ServerProcess.start({
        dataHome,
        flags: ["--backend", backend, ...place],
        env: { DAYTONA_API_KEY: server.apiKey },
      });
    const http = (of: ServerProcess) => new HttpClient({ httpUrl: of.url.replace(/^ws/, "http") });
    // Once as the default backend, once beside another, where a record shows that there is something to recover.
    for (const backend of ["daytona", "fake"]) {
      const first = await start(backend);
      const { id } = await http(first).create({ backend: "daytona" });
      await first.killHard();
      const vendor = server.plane.sandboxes.at(-1);
      expect(vendor?.record.state).toBe("started");
      const next = await start(backend);
      await expect.poll(() => vendor?.record.state).toBe("stopped");
      await expect.poll(async () => (await http(next).get(id)).state).toBe("stored");
      expect((await http(next).call("POST", `/v1/sandboxes/${id}/resume`)).status).toBe(200);
      expect(await next.stop()).toBe(0);
    }
  });

  test("an unreachable Daytona does not keep a server from starting", async () => {
    const flags = ["--backend", "daytona", "--daytona-api-url", "http://127.0.0.1:1/api"];
    const away = await ServerProcess.start({ flags, env: { DAYTONA_API_KEY: "key" } });
    expect(away.log).toContain("Sandboxes that earlier servers left at Daytona could not be listed");
  });
});

async function vendorIdOf(handle: Promise<unknown>): Promise<string> {
  return ((await handle) as { vendorId: string }).vendorId;
}

async function firstLine(child: ChildProcess): Promise<string> {
  const [line] = (await once(child.stdout as Readable, "data")) as [Buffer];
  return line.toString("utf8").trim();
}
