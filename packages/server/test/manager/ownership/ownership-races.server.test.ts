import { SandboxerError } from "@sandboxer/protocol";
import { describe, expect, test } from "vitest";
import type { ObjectStore } from "../../../src/store/store.ts";
import { eventually } from "../../../../../test/kit/eventually.ts";
import { startTestServer, type TestServer } from "../../../../../test/kit/server/test-server.ts";
import { absentableStore } from "../support/absentable-store.ts";
import { holdNext } from "../support/hold-operation.ts";
import { stillnessWatch } from "../support/stillness-watch.ts";
import { meanwhile } from "../../../../../test/kit/meanwhile.ts";

const DURABLE = { enable_checkpoint: true };
const HANDOFF = { ...DURABLE, enable_sandbox_handoff: true };

type Swap = () => ReturnType<ObjectStore["swapCell"]>;

/** A store whose swaps of heads go through a test's hands. */
function aroundHeadSwaps(around: (swap: Swap) => ReturnType<Swap>): (store: ObjectStore) => ObjectStore {
  return (store) =>
    new Proxy(store, {
      get: (target, name) => {
        const method = Reflect.get(target, name) as unknown;
        if (typeof method !== "function") return method;
        return (...args: unknown[]) => {
          const call = (): unknown => Reflect.apply(method, target, args);
          const isHeadSwap = name === "swapCell" && String(args[0]).endsWith("/metadata.json");
          return isHeadSwap ? around(call as Swap) : call();
        };
      },
    });
}

async function declareDead(server: TestServer): Promise<void> {
  const other = await startTestServer({ store: server.storeFolder ?? null });
  const before = server.instances.instanceId ?? "";
  await other.instances.markDead(before);
  await eventually("it has noticed", () => server.instances.instanceId !== before);
}

describe("a server that is declared dead", () => {
  test("does not run a sandbox that it was restoring", async () => {
    const server = await startTestServer({ leaseTtlMs: 1_000 });
    const { client, id } = await server.create(DURABLE);
    await client.send({ action: "checkpoint" }).untilClosed();
    const held = Promise.withResolvers<void>();
    server.backend.faults.set("acquireFromSnapshot", { until: held.promise, times: 1 });
    const attached = server.attach(id);
    await eventually("it is claimed", () => server.durable.ownership.held(id) !== undefined);
    await declareDead(server);
    held.resolve();
    expect((await attached.untilClosed()).slice(0, 2)).toEqual(["RESTORING", "RESTORE_ERROR"]);
    expect(server.backend.runningCount).toBe(0);
    expect(server.manager.states()).toEqual({});
  });

  test("does not remove an image that may have been published", async () => {
    let silent = false;
    const swapped = Promise.withResolvers<void>();
    const server = await startTestServer({
      leaseTtlMs: 1_000,
      wrapStore: aroundHeadSwaps(async (swap) => {
        const result = await swap();
        if (!silent) return result;
        swapped.resolve();
        return new Promise(() => {});
      }),
    });
    const { client, id } = await server.create(DURABLE);
    silent = true;
    client.send({ action: "checkpoint" });
    await swapped.promise;
    await declareDead(server);
    await client.closed;
    const other = await startTestServer({ store: server.storeFolder ?? null });
    expect(await other.attach(id).outcome()).toEqual(["RESTORING", "RUNNING"]);
  });

  test("keeps running when one of its copies cannot be ended", async () => {
    const server = await startTestServer();
    const { client } = await server.create(DURABLE);
    server.backend.faults.set("destroy", { error: new SandboxerError("internal", "it clings"), times: 1 });
    await server.manager.loseOwnership(new SandboxerError("lease_lost", "declared dead"));
    expect(await client.untilClosed()).toEqual(["LOCK_RENEWAL_ERROR", "error:declared dead", 4000]);
    expect(server.problems).toEqual([expect.stringContaining("it clings")]);
  });
});

describe("a server that cannot prove that it is alive", () => {
  test("keeps a just restored sandbox frozen", async () => {
    const store = absentableStore();
    const watch = stillnessWatch();
    const server = await startTestServer({ leaseTtlMs: 1_000, wrapStore: store.wrapStore, ...watch });
    const { client, id } = await server.create(DURABLE);
    await client.send({ action: "checkpoint" }).untilClosed();
    const { id: running } = await server.create(DURABLE);
    const load = holdNext(server.backend, "acquireFromSnapshot");
    server.attach(id);
    await load.reached;
    store.away = true;
    await eventually("the sandbox that runs was frozen", () => watch.still.get(running) === true);
    expect(watch.still.has(id)).toBe(false);
    load.release();
    await eventually("it is held still", () => watch.still.get(id) === true);
    store.away = false;
    await eventually("it goes on", () => watch.still.get(id) === false);
  });

  test("keeps a sandbox frozen whose save failed", async () => {
    const store = absentableStore();
    const watch = stillnessWatch();
    const server = await startTestServer({ leaseTtlMs: 1_000, wrapStore: store.wrapStore, ...watch });
    const { client, id } = await server.create(DURABLE);
    const { id: running } = await server.create(DURABLE);
    const save = holdNext(server.backend, "snapshot");
    client.send({ action: "checkpoint" });
    await save.reached;
    store.away = true;
    await eventually("the sandbox that runs was frozen", () => watch.still.get(running) === true);
    expect(watch.still.has(id)).toBe(false);
    save.release();
    await client.closed;
    await eventually("it is held still", () => watch.still.get(id) === true);
    store.away = false;
    await eventually("it goes on", () => watch.still.get(id) === false);
  });

  test("sends nothing to an attaching client until it can", async () => {
    const store = absentableStore();
    const server = await startTestServer({ leaseTtlMs: 1_000, wrapStore: store.wrapStore });
    const { client, id } = await server.create(DURABLE);
    const sandbox = await server.live(id);
    await client.leave();
    await eventually("the client disconnected", () => sandbox.client === undefined);
    store.away = true;
    await eventually("it is frozen", () => server.durable.ownership.instances.frozen);
    const attached = server.attach(id);
    await eventually("the client is attached", () => sandbox.client !== undefined);
    await meanwhile(100);
    expect(attached.events).toEqual([]);
    store.away = false;
    expect(await attached.outcome()).toEqual(["RUNNING"]);
  });

  test("drains anyway, with a client that waits for an answer", async () => {
    const store = absentableStore();
    const server = await startTestServer({ leaseTtlMs: 1_000, wrapStore: store.wrapStore });
    const { client } = await server.create(DURABLE);
    store.away = true;
    await eventually("it is frozen", () => server.durable.ownership.instances.frozen);
    const bytesRead = (): number => [...server.sockets].reduce((sum, socket) => sum + socket.bytesRead, 0);
    const before = bytesRead();
    client.run("bash", "echo never");
    await eventually("the server has read it", () => bytesRead() > before);
    await server.drain();
    expect((await client.untilClosed()).at(-1)).toBe(4000);
    expect(server.manager.states()).toEqual({});
  });
});

test("a drain ends also when a sandbox that waits for its execution cannot be saved", async () => {
  const server = await startTestServer();
  const { client } = await server.create({ ...DURABLE, on_disconnect: "checkpoint" });
  await client.run("bash", "sleep 60").until("EXECUTION_RUNNING");
  await client.leave();
  await eventually("it has gone", async () => server.sockets.size === 0);
  server.backend.faults.set("snapshot", { error: new SandboxerError("no_space", "the disk is full") });
  await server.drain();
  expect(server.backend.runningCount).toBe(0);
});

test("a late kill does not delete a sandbox that was saved meanwhile", async () => {
  const server = await startTestServer();
  const { client, id } = await server.create({
    ...DURABLE,
    enable_idle_timeout_auto_checkpoint: true,
    idle_timeout: 0.2,
  });
  const held = Promise.withResolvers<void>();
  server.backend.faults.set("snapshot", { until: held.promise, times: 1 });
  await client.until("CHECKPOINTING");
  await client.send({ action: "kill_sandbox" }).until("DELETING");
  held.resolve();
  expect(await client.untilClosed()).toEqual(["CHECKPOINTED", 1000]);
  expect(await server.attach(id).outcome()).toEqual(["RESTORING", "RUNNING"]);
});

test("a sandbox that dies while it is destroyed leaves nothing in the store", async () => {
  const held = Promise.withResolvers<void>();
  const swapping = Promise.withResolvers<void>();
  let hold = false;
  const server = await startTestServer({
    wrapStore: aroundHeadSwaps(async (swap) => {
      if (hold) swapping.resolve();
      if (hold) await held.promise;
      return swap();
    }),
  });
  const { client, id } = await server.create(DURABLE);
  await client.send({ action: "checkpoint" }).untilClosed();
  const again = server.attach(id);
  await again.until("RUNNING");
  hold = true;
  again.send({ action: "kill_sandbox" });
  await swapping.promise;
  server.backend.crash(id, "the engine died.");
  await again.closed;
  held.resolve();
  await eventually("its data are gone", async () => (await server.durable.checkpoints.list(id))?.length === 0);
  expect(server.operations.find(({ operation }) => operation === "destroy")).toMatchObject({ outcome: "ok" });
});

test("a sandbox that dies once it is published is saved", async () => {
  const held = Promise.withResolvers<void>();
  const published = Promise.withResolvers<void>();
  let hold = false;
  const server = await startTestServer({
    wrapStore: aroundHeadSwaps(async (swap) => {
      const result = await swap();
      if (hold) published.resolve();
      if (hold) await held.promise;
      return result;
    }),
  });
  const { client, id } = await server.create(DURABLE);
  hold = true;
  client.send({ action: "checkpoint" });
  await published.promise;
  server.backend.crash(id, "the engine died.");
  await client.closed;
  held.resolve();
  await eventually("it is over", () => server.operations.some(({ operation }) => operation === "checkpoint"));
  expect(server.operations.find(({ operation }) => operation === "checkpoint")).toMatchObject({ outcome: "ok" });
  expect(await server.attach(id).outcome()).toEqual(["RESTORING", "RUNNING"]);
});

test("a newcomer gets a sandbox whose other save failed", async () => {
  const first = await startTestServer({ leaseTtlMs: 3_000 });
  const second = await startTestServer({
    leaseTtlMs: 3_000,
    store: first.storeFolder ?? null,
    handoffTimeoutMs: 4_000,
  });
  const { client, id } = await first.create(HANDOFF);
  const held = Promise.withResolvers<void>();
  const error = new SandboxerError("internal", "no luck");
  first.backend.faults.set("snapshot", { until: held.promise, error, times: 1 });
  await client.send({ action: "checkpoint" }).until("CHECKPOINTING");
  const fresh = second.attach(id);
  await eventually("it is asked for", () => (first.durable.ownership.held(id)?.want ?? null) !== null);
  held.resolve();
  expect((await fresh.outcome()).at(-1)).toBe("RUNNING");
});

test("a client that attaches between a release and its report waits instead of being refused", async () => {
  const told = Promise.withResolvers<void>();
  const writing = Promise.withResolvers<void>();
  const wrapStore = (store: ObjectStore): ObjectStore =>
    new Proxy(store, {
      get: (target, name) => {
        const method = Reflect.get(target, name) as unknown;
        if (typeof method !== "function") return method;
        return (...args: unknown[]): unknown => {
          const call = (): unknown => Reflect.apply(method, target, args);
          if (name !== "writeText" || !String(args[0]).endsWith("/latest")) return call();
          writing.resolve();
          return told.promise.then(call);
        };
      },
    });
  const server = await startTestServer({ wrapStore });
  const { client, id } = await server.create(HANDOFF);
  client.send({ action: "checkpoint" });
  await writing.promise;
  const next = server.attach(id);
  await next.opened;
  told.resolve();
  expect(await next.until("RUNNING")).toContain("RESTORING");
});
