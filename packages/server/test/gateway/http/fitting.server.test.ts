import { expect, test } from "vitest";
import { FakeBackend } from "../../../src/backends/fake/index.ts";
import { startTestServer, type TestServer } from "../../../../../test/kit/server/test-server.ts";
import { temporaryFolder } from "../../../../../test/kit/temporary-folder.ts";
import { get, sandboxOn, serveInside } from "../preview/support.ts";
import { call, known, type Told } from "../relay/support.ts";

function post({ httpUrl }: TestServer, path: string, body: object = {}): Promise<Told> {
  return call("POST", `${httpUrl}/v1/${path}`, body);
}

const at = ({ httpUrl }: TestServer) => ({ owner: { url: httpUrl } });

/** Two servers whose engines cannot load each other's states. */
async function oldAndNew(): Promise<{ old: TestServer; newer: TestServer }> {
  const store = await temporaryFolder();
  const old = await startTestServer({ store });
  const newer = await startTestServer({ store, backend: new FakeBackend({ engineVersion: "2" }) });
  await known(newer, 1);
  return { old, newer };
}

test("a paused sandbox and a snapshot go to a server with their engine, and no other one claims them", async () => {
  const { old, newer } = await oldAndNew();
  const { id } = (await post(old, "sandboxes")).body;
  const snapshot = (await post(old, `sandboxes/${id}/snapshot`)).body;
  await post(old, `sandboxes/${id}/checkpoint`);
  expect((await post(newer, `sandboxes/${id}/resume`)).body).toMatchObject({ epoch: 2, ...at(old) });
  expect((await post(newer, `snapshots/${snapshot.id}/restore`)).body).toMatchObject(at(old));
  expect(newer.backend.runningCount).toBe(0);
  await post(old, `sandboxes/${id}/checkpoint`);
  await old.drain();
  const nowhere = await post(newer, `sandboxes/${id}/resume`);
  expect([nowhere.status, nowhere.body.error.code]).toEqual([422, "image_incompatible"]);
  expect(await newer.durable.ownership.read(id)).toMatchObject({ owner: null, epoch: 2 });
});

test("a sandbox is not handed off to a server that cannot load its state: it keeps running", async () => {
  const { old, newer } = await oldAndNew();
  const { id } = (await post(old, "sandboxes")).body;
  await post(old, `sandboxes/${id}/checkpoint`, { leave_running: true });
  const refused = await post(old, `sandboxes/${id}/handoff`, { to: newer.instances.instanceId });
  expect(refused.body.error.code).toBe("image_incompatible");
  expect(await old.manager.find(id)).toMatchObject({ state: "running", epoch: 1 });
});

test("a drained sandbox is offered to servers with its engine only", async () => {
  const { old, newer } = await oldAndNew();
  const same = await startTestServer({ store: newer.storeFolder ?? "" });
  await known(old, 2);
  const { id } = (await post(old, "sandboxes")).body;
  expect(await old.drain()).toEqual([]);
  await expect.poll(() => same.manager.states()["running"]).toBe(1);
  expect(old.problems).toEqual([]);
  const { epoch } = await same.manager.pause(await same.manager.running(id));
  const left = { sandboxId: id, epoch: epoch ?? 0, from: same.instances.instanceId, reason: "drain" } as const;
  await expect(newer.manager.accept(left)).rejects.toMatchObject({ code: "image_incompatible" });
});

test("a server without a backend passes a request for it on", async () => {
  const store = await temporaryFolder();
  const plain = await startTestServer({ store });
  const other = await startTestServer({ store, moreBackends: [new FakeBackend({ name: "second" })] });
  await known(plain, 1);
  const made = await post(plain, "sandboxes", { backend: "second" });
  expect(made.body).toMatchObject({ backend: "second", ...at(other) });
  const unknown = await post(plain, "sandboxes", { backend: "third" });
  expect([unknown.status, unknown.body.error.code]).toEqual([400, "bad_request"]);
});

test("copies of a fork that a server has no room for run on another one", async () => {
  const store = await temporaryFolder();
  const [small, large] = [await startTestServer({ store, maxSandboxes: 2 }), await startTestServer({ store })];
  await known(small, 1);
  const { client, id } = await small.create({ enable_checkpoint: true });
  await client.run("bash", "echo kept > file").until("EXECUTION_DONE");
  const forked = await post(small, `sandboxes/${id}/fork`, { count: 3, name: "copy" });
  expect(forked.status).toBe(201);
  const items = forked.body["items"] as { id: string; name: string; token: string; owner: { here: boolean } }[];
  expect(items.map(({ name }) => name)).toEqual(["copy-1", "copy-2", "copy-3"]);
  expect(items.map(({ owner }) => owner.here).toSorted()).toEqual([false, false, true]);
  const snapshot = forked.body["snapshot_id"];
  for (const item of items) {
    expect((await small.durable.ownership.read(item.id))?.lineage).toMatchObject({ fork: snapshot, snapshot });
    const again = large.attach(item.id, `?token=${item.token}&relay=allow`);
    expect(await again.run("bash", "cat file").until("EXECUTION_DONE")).toContain("out:kept\n");
  }
  // A user's restore of the same snapshot is no copy of the fork.
  const restored = (await post(small, `snapshots/${String(snapshot)}/restore`)).body;
  expect((await small.durable.ownership.read(restored.id))?.lineage.fork).toBeUndefined();
});

test("a fork that fails in the middle leaves no copy on any server", async () => {
  const store = await temporaryFolder();
  const options = { store, maxSandboxes: 2 };
  const [owner, other] = [await startTestServer(options), await startTestServer(options)];
  await known(owner, 1);
  const { id } = (await post(owner, "sandboxes")).body;
  const forked = await post(owner, `sandboxes/${id}/fork`, { count: 5 });
  expect([forked.status, forked.body.error.code]).toEqual([429, "limit_reached"]);
  expect([owner.backend.runningCount, other.backend.runningCount]).toEqual([1, 0]);
});

test("a request to a port of a paused sandbox resumes it on another server if this one is full", async () => {
  const store = await temporaryFolder();
  const full = await startTestServer({ store, maxSandboxes: 0 });
  const open = await startTestServer({ store });
  await known(full, 1);
  serveInside(open.backend, (_request, answer) => void answer.end("hello"));
  const inside = await sandboxOn(open);
  await post(open, `sandboxes/${inside.id}/checkpoint`);
  expect(await get({ ...inside, server: full })).toMatchObject({ status: 200, text: "hello" });
  expect(await open.manager.find(inside.id)).toMatchObject({ state: "running", owner: { here: true } });
  const taken = open.manager.events.after(undefined).filter(({ type }) => type === "sandbox.taken_over");
  expect(taken).toMatchObject([{ sandbox_id: inside.id, data: { reason: "no_room" } }]);
  await post(open, `sandboxes/${inside.id}/checkpoint`);
  await open.drain();
  expect(await get({ ...inside, server: full })).toMatchObject({ status: 429 });
});
