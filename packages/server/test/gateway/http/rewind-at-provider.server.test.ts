import type { Head, SandboxRecord } from "@sandboxer/protocol";
import { SandboxerError } from "@sandboxer/protocol";
import { describe, expect, onTestFinished, test } from "vitest";
import type { SandboxBackend } from "../../../src/backends/backend.ts";
import { FakeBackend } from "../../../src/backends/fake/index.ts";
import { eventually } from "../../../../../test/kit/eventually.ts";
import { temporaryFolder } from "../../../../../test/kit/temporary-folder.ts";
import { startTestServer, type TestServer } from "../../../../../test/kit/server/test-server.ts";
import { SandboxClient } from "./processes/support.ts";
import { SnapshotClient } from "./snapshot-client.ts";

const KEEPS = { snapshot: "filesystem", filesystemSnapshot: true, outlivesServer: true } as const;

/** The end of a server is not the end of its provider. */
function outliving(backend: FakeBackend): SandboxBackend {
  return new Proxy(backend, {
    get: (target, name) => {
      const value: unknown = name === "close" ? async () => {} : Reflect.get(target, name, target);
      return typeof value === "function" ? (value.bind(target) as unknown) : value;
    },
  });
}

/** A sandbox whose file says `after`, a snapshot in which it says `before`, and servers over the same provider. */
async function changedSandbox(body: object = { name: "kept", labels: { a: "1" } }) {
  const [backend, store] = [new FakeBackend({ capabilities: KEEPS }), await temporaryFolder()];
  const other = new FakeBackend({ name: "other", loads: [], capabilities: KEEPS });
  const options = { backend, store, wrapBackend: outliving, moreBackends: [outliving(other)] };
  const serve = (): Promise<TestServer> => startTestServer(options);
  const server = await serve();
  const api = new SnapshotClient(server);
  const { body: created } = await api.call<SandboxRecord & { token: string }>("POST", "/v1/sandboxes", body);
  const box = new SandboxClient(server, created.id);
  await box.exec({ shell: "echo before > file" });
  const snapshot = await api.take(box.id);
  await box.exec({ shell: "echo after > file" });
  return { backend, other, serve, server, api, box, created, snapshot };
}

/** The server does nothing more from its n-th write to a head on, as if it was killed before or after that. */
function diesAt({ durable: { ownership } }: TestServer, nth: number, when: "before" | "after"): Promise<void> {
  const reached = Promise.withResolvers<void>();
  const end = Promise.withResolvers<never>();
  end.promise.catch(() => {});
  onTestFinished(() => end.reject(new SandboxerError("lease_lost", "The server is dead.")));
  const dead = (): Promise<never> => (reached.resolve(), end.promise);
  let writes = 0;
  const dying = async (write: () => Promise<Head>): Promise<Head> => {
    writes += 1;
    if (writes === nth && when === "before") return await dead();
    const head = await write();
    return writes === nth ? await dead() : head;
  };
  const [update, rehouse] = [ownership.update.bind(ownership), ownership.rehouse.bind(ownership)];
  const replaceState = ownership.replaceState.bind(ownership);
  ownership.update = (...parameters) => dying(() => update(...parameters));
  ownership.replaceState = (...parameters) => dying(() => replaceState(...parameters));
  ownership.rehouse = (...parameters) => dying(() => rehouse(...parameters));
  return reached.promise;
}

async function fileOf(box: SandboxClient): Promise<string> {
  return (await box.exec({ shell: "cat file" })).stdout.trim();
}

describe("a sandbox that its provider keeps is rewound", () => {
  test("in place: the same id, name, labels, token and epoch, again and again", async () => {
    const { backend, serve, server, box, created, snapshot } = await changedSandbox();
    for (const copy of [1, 2]) {
      const { status, body } = await box.call<SandboxRecord>("POST", "/rewind", { snapshot_id: snapshot.id });
      const { id, name, labels, epoch } = created;
      expect([status, body]).toMatchObject([200, { id, name, labels, epoch, state: "running" }]);
      expect(body.origin.snapshot_id).toBe(snapshot.id);
      expect(await server.durable.ownership.read(id)).toMatchObject({ copy, spare_copy: null });
      expect([await fileOf(box), backend.runningCount]).toEqual(["before", 1]);
      await box.exec({ shell: "echo after > file" });
    }
    expect(await server.attach(created.id, `?sandbox_token=${created.token}`).outcome()).toEqual(["RUNNING"]);
    await server.manager.drain();
    const next = await serve();
    const there = new SandboxClient(next, created.id);
    expect((await there.call("POST", "/resume")).status).toBe(200);
    expect([await fileOf(there), backend.runningCount]).toEqual(["after", 1]);
  });

  test("or not at all, if the copy cannot be created or the store does not accept the change", async () => {
    const { backend, server, box, created, snapshot } = await changedSandbox();
    const error = new SandboxerError("no_space", "No room.");
    backend.faults.set("acquireFromSnapshot", { error, times: 1 });
    expect((await box.call("POST", "/rewind", { snapshot_id: snapshot.id })).body.error.code).toBe("no_space");
    const { ownership } = server.durable;
    ownership.replaceState = async () => {
      throw error;
    };
    expect((await box.call("POST", "/rewind", { snapshot_id: snapshot.id })).body.error.code).toBe("no_space");
    expect([await fileOf(box), backend.runningCount]).toEqual(["after", 1]);
    const head = await ownership.read(created.id);
    expect([head?.copy, head?.spare_copy]).toEqual([0, null]);
  });

  const STEPS = [
    ["it has said that a copy comes", 1, "after", "after"],
    ["the copy is made", 2, "before", "after"],
    ["the copy is the sandbox", 2, "after", "before"],
    ["the one before is ended", 3, "before", "before"],
  ] as const;
  test.each(STEPS)("intact when its server dies after %s", async (_, nth, when, says) => {
    const { backend, serve, server, box, created, snapshot } = await changedSandbox();
    const reached = diesAt(server, nth, when);
    void box.call("POST", "/rewind", { snapshot_id: snapshot.id }).catch(() => {});
    await reached;
    const next = await serve();
    await next.instances.markDead(server.instances.instanceId);
    const there = new SandboxClient(next, created.id);
    expect((await there.call("POST", "/resume")).status).toBe(200);
    expect(await fileOf(there)).toBe(says);
    await eventually("the other copy is gone", async () => {
      const head = await next.durable.ownership.read(created.id);
      return head?.spare_copy === null && backend.runningCount === 1;
    });
    expect(await fileOf(there)).toBe(says);
  });
});

test.each([
  ["it has said that a copy comes", 1, "after", "fake"],
  ["the copy is made", 2, "before", "fake"],
  ["the copy is the sandbox", 2, "after", "other"],
  ["the one before is ended", 3, "before", "other"],
] as const)("a sandbox whose server dies in its move after %s is in one place", async (_, nth, when, place) => {
  const { backend, other, serve, server, box, created } = await changedSandbox();
  const reached = diesAt(server, nth, when);
  void box.call("POST", "/move", { backend: "other" }).catch(() => {});
  await reached;
  const next = await serve();
  await next.instances.markDead(server.instances.instanceId);
  const there = new SandboxClient(next, created.id);
  const { body } = await there.call<SandboxRecord>("POST", "/resume");
  expect(body).toMatchObject({ id: created.id, name: "kept", backend: place, state: "running" });
  await eventually("the other copy is gone", async () => {
    const head = await next.durable.ownership.read(created.id);
    return head?.spare_copy === null && backend.runningCount + other.runningCount === 1;
  });
  expect(await fileOf(there)).toBe("after");
});

describe("a sandbox with a key that its provider has lost", () => {
  const BODY = { key: "my-convo", name: "kept", labels: { a: "1" } };

  test("continues from its newest snapshot as itself: the same id, name, labels and token, at a later epoch", async () => {
    const { backend, server, box, created, snapshot } = await changedSandbox(BODY);
    backend.crash(box.id);
    await eventually("it has ended", () => backend.runningCount === 0);
    const api = new SnapshotClient(server);
    const { body } = await api.call<SandboxRecord & { tier: string }>("POST", "/v1/sandboxes/acquire", BODY);
    const { id, name, labels } = created;
    expect(body).toMatchObject({ tier: "restored", id, name, labels, state: "running" });
    expect([body.origin.snapshot_id, (body.epoch ?? 0) > (created.epoch ?? 0)]).toEqual([snapshot.id, true]);
    expect([await fileOf(box), backend.runningCount]).toEqual(["before", 1]);
    expect(await server.attach(id, `?sandbox_token=${created.token}`).outcome()).toEqual(["RUNNING"]);
    // Clients that know it at its earlier state are refused.
    const stale = { "if-sandbox-epoch": String(created.epoch) };
    expect((await box.call("POST", "/exec", { shell: "true" }, stale)).status).toBe(412);
    const again = await api.call<{ id: string; tier: string }>("POST", "/v1/sandboxes/acquire", BODY);
    expect(again.body).toMatchObject({ id, tier: "reattached" });
  });

  test("is created again when there is no snapshot of it, or none that can be loaded", async () => {
    const { backend, server, api, box, snapshot } = await changedSandbox(BODY);
    backend.crash(box.id);
    await eventually("it has ended", () => backend.runningCount === 0);
    backend.faults.set("acquireFromSnapshot", { error: new SandboxerError("no_space", "No room.") });
    const { body } = await api.call<SandboxRecord & { tier: string }>("POST", "/v1/sandboxes/acquire", BODY);
    expect([body.tier, body.id === box.id, backend.runningCount]).toEqual(["fresh", false, 1]);
    expect((await api.http.get(box.id)).state).toBe("destroyed");
    expect((await api.get(snapshot.id)).state).toBe("ready");
    expect(server.problems.join()).toMatch(/could not be restored/);
  });
});

test("a provider that keeps only a record of a sandbox cannot rewind it", async () => {
  const backend = new FakeBackend({ capabilities: { ...KEEPS, snapshot: "metadata" } });
  const api = new SnapshotClient(await startTestServer({ backend }));
  const box = await SandboxClient.create(api.server);
  const { id } = await api.take(box.id);
  expect(await api.refused("POST", `/v1/sandboxes/${box.id}/rewind`, { snapshot_id: id })).toEqual([
    422,
    "not_supported",
  ]);
});
