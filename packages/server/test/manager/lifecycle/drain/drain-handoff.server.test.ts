import { expect, test } from "vitest";
import { FakeBackend } from "../../../../src/backends/fake/index.ts";
import { eventually } from "../../../../../../test/kit/eventually.ts";
import { startTestServer, type TestServer } from "../../../../../../test/kit/server/test-server.ts";
import { temporaryFolder } from "../../../../../../test/kit/temporary-folder.ts";
import { bearer, call, known } from "../../../gateway/relay/support.ts";

const DURABLE = { enable_checkpoint: true };

async function create(server: TestServer, body: object = {}): Promise<string> {
  return (await call("POST", `${server.httpUrl}/v1/sandboxes`, body)).body.id;
}

async function ownerOf(server: TestServer, id: string): Promise<string | null | undefined> {
  return (await server.durable.ownership.read(id))?.owner;
}

async function runsAt(server: TestServer, id: string): Promise<void> {
  await eventually("the sandbox runs there", async () => {
    const { state, owner } = await server.manager.find(id);
    return state === "running" && owner?.here === true;
  });
}

test("a drained sandbox keeps running on another server, with its execution and its files", async () => {
  const store = await temporaryFolder();
  const [leaving, staying] = [await startTestServer({ store }), await startTestServer({ store })];
  await known(leaving, 1);
  const { client, id } = await leaving.create(DURABLE);
  await client.run("bash", "echo kept > file; echo begun; sleep 1; echo finished").until("out:begun\n");
  expect(await leaving.drain()).toEqual([]);
  expect((await client.untilClosed()).at(-1)).toBe(1012);
  await runsAt(staying, id);
  expect(staying.backend.runningCount).toBe(1);
  // Nothing was told twice, and nothing was lost.
  const again = staying.attach(id).send({ action: "reconnect" });
  await again.until("EXECUTION_DONE");
  expect(client.output + again.output).toBe("begun\nfinished\n");
  expect(await again.run("bash", "cat file").until("EXECUTION_DONE")).toContain("out:kept\n");
  const taken = staying.manager.events.after(undefined).filter(({ type }) => type === "sandbox.taken_over");
  expect(taken).toMatchObject([{ sandbox_id: id, data: { reason: "drain", to: staying.instances.instanceId } }]);
});

test("a client that attaches while the sandbox is being resumed gets it", async () => {
  const store = await temporaryFolder();
  const backend = new FakeBackend();
  const [leaving, staying] = [await startTestServer({ store }), await startTestServer({ store, backend })];
  await known(leaving, 1);
  const { id } = await leaving.create(DURABLE);
  const { promise: until, resolve: goOn } = Promise.withResolvers<void>();
  backend.faults.set("acquireFromSnapshot", { until });
  await leaving.drain();
  await eventually("it is being restored", () => staying.manager.states()["restoring"] === 1);
  const client = staying.attach(id);
  await client.opened;
  goOn();
  expect(await client.outcome()).toContain("RUNNING");
});

test("a client that comes back at a third server gets the sandbox there, even in the middle of an execution", async () => {
  const store = await temporaryFolder();
  const [leaving, staying] = [await startTestServer({ store }), await startTestServer({ store })];
  await known(leaving, 1);
  const { client, id } = await leaving.create(DURABLE);
  await client.run("bash", "echo begun; sleep 2; echo finished").until("out:begun\n");
  await leaving.drain();
  await runsAt(staying, id);
  const third = await startTestServer({ store });
  const again = third.attach(id).send({ action: "reconnect" });
  await again.until("EXECUTION_DONE");
  expect(client.output + again.output).toBe("begun\nfinished\n");
  expect([staying.backend.runningCount, third.backend.runningCount]).toEqual([0, 1]);
});

test("a server without room for all accepts as many as it has room for; the others stay paused", async () => {
  const store = await temporaryFolder();
  const [leaving, small] = [await startTestServer({ store }), await startTestServer({ store, maxSandboxes: 2 })];
  await known(leaving, 1);
  const ids = [await create(leaving), await create(leaving), await create(leaving), await create(leaving)];
  expect(await leaving.drain()).toEqual([]);
  await eventually("two run", () => small.manager.states()["running"] === 2);
  const owners = await Promise.all(ids.map((id) => ownerOf(small, id)));
  expect(owners.filter((owner) => owner === null)).toHaveLength(2);
  const paused = ids[owners.indexOf(null)] ?? "";
  expect(await small.manager.find(paused)).toMatchObject({ state: "stored" });
});

test("without another server, or with one that lacks the backend, drained sandboxes stay paused", async () => {
  const store = await temporaryFolder();
  const leaving = await startTestServer({ store });
  const id = await create(leaving);
  await leaving.drain();
  const moreBackends = [new FakeBackend({ name: "second" })];
  const next = await startTestServer({ store, moreBackends });
  expect(await next.manager.find(id)).toMatchObject({ state: "stored", owner: null });
  const second = await create(next, { backend: "second" });
  const other = await startTestServer({ store });
  await known(next, 1);
  expect(await next.drain()).toEqual([]);
  expect(next.problems).toEqual([]);
  expect(await other.manager.find(second)).toMatchObject({ state: "stored", owner: null });
});

test("a sandbox that is encrypted with its client's key, or saved on disconnect, is not offered", async () => {
  const store = await temporaryFolder();
  const [leaving, staying] = [await startTestServer({ store }), await startTestServer({ store })];
  await known(leaving, 1);
  const key = { "sandboxer-encryption-key": Buffer.alloc(32, 7).toString("base64") };
  const { id } = (await call("POST", `${leaving.httpUrl}/v1/sandboxes`, {}, key)).body;
  const left = await create(leaving, { on_disconnect: "checkpoint" });
  await leaving.drain();
  expect(await staying.manager.find(left)).toMatchObject({ state: "stored" });
  expect(leaving.manager.events.after(undefined).map(({ type }) => type)).not.toContain("sandbox.handed_over");
  expect(await staying.manager.find(id)).toMatchObject({ state: "stored" });
});

test("of two servers that drain at once, neither keeps a sandbox from the store", async () => {
  const store = await temporaryFolder();
  const servers = [await startTestServer({ store }), await startTestServer({ store })];
  const third = await startTestServer({ store });
  for (const server of servers) await known(server, 2);
  const ids = (await Promise.all(servers.flatMap((server) => [create(server), create(server)]))).toSorted();
  const unsaved = await Promise.all(servers.map((server) => server.drain()));
  expect(unsaved.flat()).toEqual([]);
  await eventually("the third server has all, or they are paused", async () => {
    const owners = await Promise.all(ids.map((id) => ownerOf(third, id)));
    return owners.every((owner) => owner === null || owner === third.instances.instanceId);
  });
  for (const id of ids) expect((await third.manager.resume({ sandboxId: id })).id).toBe(id);
  expect(third.backend.runningCount).toBe(ids.length);
});

test("offers of strangers are refused, and a late offer does not resume what its user has paused since", async () => {
  const store = await temporaryFolder();
  const keys = { apiKeys: ["k"] };
  const [leaving, staying] = [await startTestServer({ store, ...keys }), await startTestServer({ store, ...keys })];
  const { id } = (await call("POST", `${leaving.httpUrl}/v1/sandboxes`, {}, bearer("k"))).body;
  const strange = await call(
    "POST",
    `${staying.httpUrl}/internal/offers/${id}?epoch=1&from=x&reason=drain`,
    {},
    bearer("k"),
  );
  expect(strange).toMatchObject({ status: 403, body: { error: { code: "permission_denied" } } });
  await leaving.manager.pause(await leaving.manager.running(id));
  await leaving.manager.pause(await leaving.manager.resume({ sandboxId: id }));
  const late = { sandboxId: id, epoch: 1, from: leaving.instances.instanceId, reason: "drain" } as const;
  await expect(staying.manager.accept(late)).rejects.toMatchObject({ code: "stale_epoch" });
  expect(await staying.manager.find(id)).toMatchObject({ state: "stored" });
});
