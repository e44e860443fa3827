import { expect, onTestFinished, test } from "vitest";
import { FakeBackend } from "../../../src/backends/fake/index.ts";
import { Instances } from "../../../src/lease/instances.ts";
import { Ownership } from "../../../src/lease/ownership.ts";
import { openStore } from "../../../src/store/open-store.ts";
import { systemClock } from "../../../src/support/clock.ts";
import { eventually } from "../../../../../test/kit/eventually.ts";
import { meanwhile } from "../../../../../test/kit/meanwhile.ts";
import { startTestServer, type TestServer } from "../../../../../test/kit/server/test-server.ts";
import { temporaryFolder } from "../../../../../test/kit/temporary-folder.ts";
import { call } from "../../gateway/relay/support.ts";

const ALWAYS = { restart: "always" };

async function create(server: TestServer, body: object): Promise<string> {
  const { status, body: made } = await call("POST", `${server.httpUrl}/v1/sandboxes`, body);
  expect(status).toBe(201);
  return made.id;
}

async function saved(server: TestServer, body: object): Promise<string> {
  const id = await create(server, body);
  await server.manager.checkpoint(await server.manager.running(id));
  return id;
}

/** As if its machine were lost: the others declare it dead, and it keeps nothing. */
async function lose(server: TestServer, survivor: TestServer): Promise<void> {
  await survivor.instances.markDead(server.instances.instanceId);
}

async function runsAt(servers: readonly TestServer[], id: string): Promise<void> {
  await eventually("one server runs it", async () => {
    const found = await Promise.all(servers.map(({ manager }) => manager.find(id)));
    return found.filter(({ owner, state }) => owner?.here === true && state === "running").length === 1;
  });
}

const told = (server: TestServer, type: string) =>
  server.manager.events.after(undefined).filter((event) => event.type === type);

test("sandboxes of a dead server that promise it are resumed by the others, each once", async () => {
  const store = await temporaryFolder();
  const [lost, second, third] = [
    await startTestServer({ store }),
    await startTestServer({ store }),
    await startTestServer({ store }),
  ];
  const promised = await Promise.all([1, 2, 3, 4].map(() => saved(lost, ALWAYS)));
  const other = await saved(lost, {});
  const paused = await saved(lost, ALWAYS);
  await lost.manager.pause(await lost.manager.running(paused));
  const from = lost.instances.instanceId;
  await lose(lost, second);
  await eventually("the third server knows it", () => third.instances.isKnownDead(from), 30_000);
  await eventually("so does the lost server", () => lost.instances.instanceId !== from);
  for (const id of promised) await runsAt([lost, second, third], id);
  const taken = [lost, second, third].flatMap((server) => told(server, "sandbox.taken_over"));
  expect(taken.map(({ sandbox_id }) => sandbox_id).toSorted()).toEqual(promised.toSorted());
  for (const { data } of taken) expect(data).toMatchObject({ from, reason: "server_died" });
  const heads = await Promise.all([other, paused].map((id) => second.durable.ownership.read(id)));
  expect(heads).toMatchObject([
    { owner: from, epoch: 1 },
    { owner: null, epoch: 1 },
  ]);
});

test("a sandbox that was never saved is not resumed, and an event says so once", async () => {
  const store = await temporaryFolder();
  const [lost, survivor] = [await startTestServer({ store }), await startTestServer({ store })];
  const id = await create(lost, ALWAYS);
  await lose(lost, survivor);
  await eventually("it is reported", () => told(survivor, "sandbox.not_resumed").length === 1);
  expect(told(survivor, "sandbox.not_resumed")).toMatchObject([
    { sandbox_id: id, data: { reason: "server_died", message: expect.stringContaining("never saved") } },
  ]);
  await lose(await startTestServer({ store }), survivor);
  await meanwhile(1_500);
  expect(told(survivor, "sandbox.not_resumed")).toHaveLength(1);
});

test("a server without room or with another engine leaves the sandbox to others; if no server fits, it is reported", async () => {
  const store = await temporaryFolder();
  const maker = await startTestServer({ store });
  const id = await create(maker, ALWAYS);
  await maker.manager.pause(await maker.manager.running(id));
  const ghost = await Instances.register({
    store: await openStore(store),
    clock: systemClock,
    ttlMs: 60_000,
    url: null,
    onFenced: () => {},
    onError: () => {},
  });
  onTestFinished(() => ghost.close());
  await new Ownership(ghost).claim(id);
  await maker.drain();
  const full = await startTestServer({ store, maxSandboxes: 0 });
  await full.instances.markDead(ghost.instanceId);
  await meanwhile(1_500);
  expect(await full.durable.ownership.read(id)).toMatchObject({ state: "live", epoch: 2 });
  await full.drain();
  // It begins with the deaths before its start.
  const strange = await startTestServer({ store, backend: new FakeBackend({ engineVersion: "2" }) });
  await eventually("it cannot restore it", () => told(strange, "sandbox.not_resumed").length === 1);
  expect(await strange.durable.ownership.read(id)).toMatchObject({ state: "live", epoch: 2 });
  const fitting = await startTestServer({ store });
  await runsAt([fitting], id);
});

test("a lost sandbox is resumed only by a server with its labels", async () => {
  const store = await temporaryFolder();
  const labels = { pool: "gpu" };
  const lost = await startTestServer({ store, labels });
  const others = [await startTestServer({ store }), await startTestServer({ store })];
  const gpu = await startTestServer({ store, labels });
  const id = await saved(lost, { ...ALWAYS, affinity: { require: labels } });
  for (const other of others) await eventually("it knows the others", () => other.instances.liveOthers.length === 3);
  await lose(lost, others[0]!);
  await runsAt([lost, gpu], id);
  expect([...others, gpu].flatMap((server) => told(server, "sandbox.not_resumed"))).toEqual([]);
});

test("the promise needs checkpoints, is shown in records and stays with the sandbox", async () => {
  const server = await startTestServer();
  const refused = await call("POST", `${server.httpUrl}/v1/sandboxes`, { ...ALWAYS, enable_checkpoint: false });
  expect(refused.body.error.code).toBe("checkpoint_disabled");
  const [promised, other] = [await create(server, ALWAYS), await create(server, {})];
  expect(await server.manager.find(promised)).toMatchObject({ restart: "always" });
  expect(await server.manager.find(other)).toMatchObject({ restart: "never" });
  const { id } = await server.create({ enable_checkpoint: true, ...ALWAYS });
  expect((await server.durable.ownership.read(id))?.about).toMatchObject(ALWAYS);
  await server.manager.amend(promised, undefined, { name: "renamed" });
  await server.manager.pause(await server.manager.running(promised));
  expect(await server.manager.find(promised)).toMatchObject({ restart: "always", name: "renamed", state: "stored" });
});
