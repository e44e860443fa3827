import { randomUUID } from "node:crypto";
import { mkdirSync, mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { SandboxerError } from "@sandboxer/protocol";
import { describe, expect, onTestFinished, test } from "vitest";
import type { ForgetOptions, SandboxBackend, SandboxHandle, SnapshotPayload } from "../../../src/backends/backend.ts";
import type { FakeBackend } from "../../../src/backends/fake/index.ts";
import { collectGarbage } from "../../../src/collection/collect-garbage.ts";
import { openStore } from "../../../src/store/open-store.ts";
import { systemClock } from "../../../src/support/clock.ts";
import { startTestServer, type TestServer } from "../../../../../test/kit/server/test-server.ts";
import { SandboxClient } from "./processes/support.ts";
import { count, SnapshotClient, startCounter } from "./snapshot-client.ts";
import { HttpClient } from "./support.ts";

/** Another server on the store, which takes the first one for dead. */
async function heirOf(dead: TestServer): Promise<TestServer> {
  const heir = await startTestServer({ store: dead.storeFolder ?? null });
  await heir.instances?.markDead(dead.instances?.instanceId ?? "");
  return heir;
}

async function collectAt(server: TestServer) {
  const store = await openStore(server.storeFolder ?? "");
  return await collectGarbage({ store, clock: systemClock, apply: true, keep: { checkpoints: { keep_last: 1 } } });
}

describe("a restored sandbox that was never saved itself", () => {
  test("starts from its snapshot again when its server dies, and nobody can remove that", async () => {
    const api = new SnapshotClient(await startTestServer());
    const box = await SandboxClient.create(api.server);
    const counter = await startCounter(box);
    await count(box, counter);
    const { id } = await api.take(box.id);
    await api.call("DELETE", `/v1/sandboxes/${box.id}`);
    const copy = await api.restore(id);
    await count(api.sandbox(copy.id), counter);

    const heir = await heirOf(api.server);
    const there = new SnapshotClient(heir);
    expect(await there.refused("DELETE", `/v1/snapshots/${id}`)).toEqual([409, "snapshot_in_use"]);
    await collectAt(heir);
    expect(await there.get(id)).toMatchObject({ state: "ready", sandboxes: [copy.id] });
    const headers = { authorization: `Bearer ${copy.token}` };
    expect(await heir.attach(copy.id, "", { headers }).outcome()).toContain("RUNNING");
    expect(await count(there.sandbox(copy.id), counter)).toBe(2);
  });

  test("is not created if another server removes the snapshot before its head exists", async () => {
    const api = new SnapshotClient(await startTestServer());
    const box = await SandboxClient.create(api.server);
    const { id } = await api.take(box.id);
    const other = new SnapshotClient(await startTestServer({ store: api.server.storeFolder ?? null }));
    const held = Promise.withResolvers<void>();
    const { backend } = other.server;
    backend.faults.set("acquireFromSnapshot", { until: held.promise, times: 1 });
    const restoring = other.call("POST", `/v1/snapshots/${id}/restore`, {});
    await expect.poll(async () => (await other.get(id)).sandboxes).toHaveLength(1);
    // The first server knows nothing of it.
    await api.remove(id);
    held.resolve();
    const { status, body } = await restoring;
    expect([status, body.error.code]).toEqual([404, "snapshot_not_found"]);
    expect(backend.runningCount).toBe(0);
    const listed = await other.call<{ items: { id: string }[] }>("GET", "/v1/sandboxes");
    expect(listed.body.items.map((each) => each.id)).toEqual([box.id]);
    expect(other.server.problems).toEqual([]);
  });

  test("the same holds for a sandbox that started from named files", async () => {
    const first = await startTestServer();
    const { client } = await first.create({ enable_checkpoint: true });
    await client.run("bash", "echo shared > file").until("EXECUTION_DONE");
    await client.send({ action: "snapshot_filesystem", name: "base" }).until("FILESYSTEM_SNAPSHOT_CREATED");
    const { id } = await first.create({ enable_checkpoint: true, filesystem_snapshot_name: "base" });
    const heir = await heirOf(first);
    const attached = heir.attach(id);
    await attached.until("RUNNING");
    expect(await attached.run("bash", "cat file").until("EXECUTION_DONE")).toContain("out:shared\n");
  });
});

describe("filesystem snapshots of the WebSocket protocol", () => {
  test("are snapshots: listed, and replaced with their name", async () => {
    const api = new SnapshotClient(await startTestServer());
    const { client, id } = await api.server.create();
    const save = (): Promise<string[]> =>
      client.send({ action: "snapshot_filesystem", name: "base" }).until("FILESYSTEM_SNAPSHOT_CREATED");
    await save();
    const first = await api.get("base");
    expect(first).toMatchObject({ name: "base", mode: "filesystem", reason: "named", sandbox_id: id });
    await save();
    const second = await api.get("base");
    expect((await api.list()).items.map((each) => each.id)).toEqual([second.id]);
    // The origin of an existing sandbox loses its name, not its data.
    const user = await api.http.create({ filesystem_snapshot_name: "base" });
    await save();
    expect(await api.get(second.id)).toMatchObject({ name: null, sandboxes: [user.id] });
    await api.call("DELETE", `/v1/sandboxes/${user.id}`);
    await collectAt(api.server);
    expect((await api.list()).items).toHaveLength(1);
    expect(api.server.problems).toEqual([]);
  });

  test("an id works in place of a name, and an unknown one is reported", async () => {
    const api = new SnapshotClient(await startTestServer());
    const box = await SandboxClient.create(api.server);
    await box.exec({ shell: "echo kept > file" });
    const { id } = await api.take(box.id, { mode: "filesystem" });
    const made = await api.http.create({ filesystem_snapshot_name: id });
    expect((await api.sandbox(made.id).exec({ shell: "cat file" })).stdout).toBe("kept\n");
    expect(await api.refused("POST", "/v1/sandboxes", { filesystem_snapshot_name: "unknown" })).toEqual([
      404,
      "snapshot_not_found",
    ]);
    expect(await api.refused("POST", "/v1/sandboxes", { filesystem_snapshot_name: randomUUID() })).toEqual([
      404,
      "snapshot_not_found",
    ]);
  });

  test("creations from a name that is being replaced get the old snapshot or the new one, complete", async () => {
    const server = await startTestServer();
    const { client } = await server.create();
    const replace = async (): Promise<void> => {
      for (let round = 0; round < 8; round++) {
        await client.run("bash", `echo ${round} > a; echo ${round} > b`).until("EXECUTION_DONE");
        await client.send({ action: "snapshot_filesystem", name: "base" }).until("FILESYSTEM_SNAPSHOT_CREATED");
      }
    };
    await client.run("bash", "echo first > a; echo first > b").until("EXECUTION_DONE");
    await client.send({ action: "snapshot_filesystem", name: "base" }).until("FILESYSTEM_SNAPSHOT_CREATED");
    const http = new HttpClient(server);
    const use = async (): Promise<void> => {
      for (let round = 0; round < 6; round++) {
        const { id } = await http.create({ filesystem_snapshot_name: "base" });
        const sandbox = new SandboxClient(server, id);
        const [a, b] = (await sandbox.exec({ shell: "cat a b" })).stdout.split("\n");
        expect(a).toBe(b);
        await http.call("DELETE", `/v1/sandboxes/${id}`);
      }
    };
    await Promise.all([replace(), use(), use()]);
  });
});

describe("the record of snapshots on this machine", () => {
  test("shows the snapshots of a directory store, and follows changes", async () => {
    const api = new SnapshotClient(await startTestServer());
    const box = await SandboxClient.create(api.server);
    const { id } = await api.take(box.id, { name: "one" });
    const shown = async () => (await api.server.snapshotFile.read()).map((each) => [each.id, each.name, each.state]);
    expect(await shown()).toEqual([[id, "one", "ready"]]);
    await api.call("PATCH", "/v1/snapshots/one", { name: "two" });
    expect(await shown()).toEqual([[id, "two", "ready"]]);
    const other = await startTestServer({ store: api.server.storeFolder ?? null });
    expect((await other.snapshotFile.read()).map((each) => each.id)).toEqual([id]);
    await api.remove("two");
    expect(await shown()).toEqual([]);
  });

  test("is all there is without a store, for backends that keep the states themselves", async () => {
    const kept = new Map<string, SnapshotPayload>();
    const api = new SnapshotClient(await startTestServer({ store: null, wrapBackend: (fake) => keeping(fake, kept) }));
    const box = await SandboxClient.create(api.server);
    await box.exec({ shell: "echo kept > file" });
    const snapshot = await api.take(box.id, { name: "base" });
    expect(snapshot).toMatchObject({ mode: "metadata", details: { reference: expect.any(String) } });
    const copy = await api.restore("base");
    expect((await api.sandbox(copy.id).exec({ shell: "cat file" })).stdout).toBe("kept\n");
    expect(await api.refused("DELETE", "/v1/snapshots/base")).toEqual([409, "snapshot_in_use"]);
    await api.call("DELETE", `/v1/sandboxes/${copy.id}`);
    await api.remove("base");
    expect((await api.list()).items).toEqual([]);
    expect(kept.size).toBe(0);
  });

  test("data that an unreachable provider keeps of a snapshot is reported, and does not delay its deletion", async () => {
    const kept = new Map<string, SnapshotPayload>();
    const asked: unknown[] = [];
    const away = (fake: FakeBackend): SandboxBackend =>
      new Proxy(keeping(fake, kept), {
        get: (target, property) => {
          if (property !== "forgetSnapshot") return bound(target, property);
          return async (payload: SnapshotPayload, options: ForgetOptions) => {
            asked.push(payload.requirements["reference"], options.placement);
            throw new SandboxerError("backend_unavailable", "state-1 stays: nobody answers.");
          };
        },
      });
    const api = new SnapshotClient(await startTestServer({ store: null, wrapBackend: away }));
    const box = await SandboxClient.create(api.server);
    const { id } = await api.take(box.id, {});
    await api.remove(id);
    expect((await api.list()).items).toEqual([]);
    expect(asked).toEqual([[...kept.keys()][0], {}]);
    const { items } = (await api.call<{ items: { type: string; data: object }[] }>("GET", "/v1/events")).body;
    const data = { snapshot_id: id, name: null, left: "state-1 stays: nobody answers." };
    expect(items.filter(({ type }) => type === "snapshot.deleted")).toMatchObject([{ data }]);
  });

  test("without a store, a backend whose states are bytes cannot be captured, and the error explains it", async () => {
    const api = new SnapshotClient(await startTestServer({ store: null }));
    const box = await SandboxClient.create(api.server);
    expect(await api.refused("POST", `/v1/sandboxes/${box.id}/snapshot`, {})).toEqual([422, "checkpoint_disabled"]);
    expect((await box.exec({ shell: "echo on" })).stdout).toBe("on\n");
  });
});

/** The fake backend as a provider that keeps the states itself, and gives out references. */
function keeping(fake: FakeBackend, kept: Map<string, SnapshotPayload>): SandboxBackend {
  const folder = mkdtempSync(join(tmpdir(), "sandboxer-kept-"));
  onTestFinished(() => rmSync(folder, { recursive: true }));
  const wrap = (handle: SandboxHandle): SandboxHandle =>
    new Proxy(handle, {
      get: (target, property) => {
        if (property !== "snapshot") return bound(target, property);
        return async (): Promise<SnapshotPayload> => {
          const reference = randomUUID();
          const into = join(folder, reference);
          mkdirSync(into);
          kept.set(reference, await target.snapshot(into, { mode: "filesystem", leaveRunning: true }));
          return { kind: "stub-metadata", members: [], requirements: { reference } };
        };
      },
    });
  const capabilities = { ...fake.capabilities, snapshot: "metadata" as const };
  return new Proxy<SandboxBackend>(fake, {
    get: (target, property) => {
      if (property === "capabilities") return capabilities;
      if (property === "forgetSnapshot")
        return async ({ requirements }: SnapshotPayload) => void kept.delete(String(requirements["reference"]));
      if (property === "acquire")
        return async (...given: Parameters<SandboxBackend["acquire"]>) => wrap(await fake.acquire(...given));
      if (property !== "acquireFromSnapshot") return bound(target, property);
      return async (...[request, { requirements }]: Parameters<SandboxBackend["acquireFromSnapshot"]>) => {
        const state = kept.get(String(requirements["reference"]));
        if (state === undefined) throw new Error("The provider has no such state.");
        return wrap(await fake.acquireFromSnapshot(request, state));
      };
    },
  });
}

function bound(target: object, property: PropertyKey): unknown {
  const value: unknown = Reflect.get(target, property, target);
  return typeof value === "function" ? (value.bind(target) as unknown) : value;
}
