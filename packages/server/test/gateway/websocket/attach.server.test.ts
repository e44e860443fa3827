import { cp, readdir, rm, writeFile } from "node:fs/promises";
import { join } from "node:path";
import { describe, expect, test } from "vitest";
import { eventually } from "../../../../../test/kit/eventually.ts";
import { temporaryFolder } from "../../../../../test/kit/temporary-folder.ts";
import { startTestServer } from "../../../../../test/kit/server/test-server.ts";

const DURABLE = { enable_checkpoint: true };
const NOBODY = "00000000-0000-4000-8000-000000000000";

describe.each([
  ["with a store", undefined, ["RESTORING", "NOT_FOUND", 1011]],
  ["without a store", null, ["NOT_FOUND", 1011]],
])("%s", (_title, store, notFound) => {
  const start = () => startTestServer(store === null ? { store } : {});

  test("live and free", async () => {
    const server = await start();
    const { client, id } = await server.create();
    await client.leave();
    const again = server.attach(id);
    expect(await again.until("RUNNING")).toEqual(["RUNNING"]);
  });

  test("live and attached", async () => {
    const server = await start();
    const { client, id } = await server.create();
    expect(await server.attach(id).untilClosed()).toEqual(["IN_USE", 1011]);
    expect(await client.run("bash", "echo undisturbed").until("EXECUTION_DONE")).toContain("out:undisturbed\n");
  });

  test("a client that disconnected cleanly can attach again at once, a hundred times", async () => {
    const server = await start();
    const { client, id } = await server.create();
    await client.leave();
    for (let round = 0; round < 100; round += 1) {
      const again = server.attach(id);
      expect(await again.until("RUNNING")).toEqual(["RUNNING"]);
      await again.leave();
    }
  });

  test.each([
    ["unknown", NOBODY],
    ["too short", "0000"],
    ["too long", `${NOBODY}0`],
    ["in capitals", "AAAAAAAA-AAAA-4AAA-8AAA-AAAAAAAAAAAA"],
    ["a path", "..%2F..%2Fetc%2Fpasswd"],
    ["a path, encoded twice", "..%252F..%252Fetc"],
    ["dots and a slash in front of an id", `..%2F${NOBODY}`],
    ["a backslash", "..%5C..%5Cetc"],
    ["an encoding that is none", "%E0%A4%A"],
    ["NUL", `${NOBODY}%00`],
    ["the store's own folder", "instances"],
    ["a name with a dot", ".head"],
    ["very long", "a".repeat(4000)],
  ])("an id that is %s", async (_what, id) => {
    const server = await start();
    expect(await server.attach(id).untilClosed()).toEqual(notFound);
  });

  test("destroyed", async () => {
    const server = await start();
    const { client, id, token } = await server.create(store === null ? {} : DURABLE);
    expect(await client.send({ action: "kill_sandbox" }).untilClosed()).toEqual([
      "KILLING",
      "DELETING",
      "DELETED",
      "KILLED",
      1000,
    ]);
    expect(await server.attach(id).untilClosed()).toEqual(notFound);
    expect(await server.attach(id, `?sandbox_token=${token}`).untilClosed()).toEqual(notFound);
  });
});

test("stored without any checkpoint", async () => {
  const server = await startTestServer();
  const { client, id } = await server.create({ ...DURABLE, idle_timeout: 0 });
  await client.closed;
  expect(await server.attach(id).untilClosed()).toEqual(["RESTORING", "NOT_FOUND", 1011]);
});

test("being restored here for another client", async () => {
  const server = await startTestServer();
  const { client, id } = await server.create(DURABLE);
  await client.send({ action: "checkpoint" }).untilClosed();
  const held = Promise.withResolvers<void>();
  server.backend.faults.set("acquireFromSnapshot", { until: held.promise });
  const first = server.attach(id);
  await first.until("RESTORING");
  expect(await server.attach(id).untilClosed()).toEqual(["IN_USE", 1011]);
  held.resolve();
  expect(await first.until("RUNNING")).toEqual(["RUNNING"]);
});

test("of a hundred concurrent attaches to a paused sandbox one succeeds, and there is one copy", async () => {
  const server = await startTestServer();
  const { client, id } = await server.create(DURABLE);
  await client.send({ action: "checkpoint" }).untilClosed();
  await eventually("the old copy is gone", () => server.backend.runningCount === 0);
  const clients = Array.from({ length: 100 }, () => server.attach(id));
  const said = await Promise.all(clients.map((each) => each.outcome()));
  const winners = clients.filter((_client, index) => said[index]?.includes("RUNNING"));
  expect(winners).toHaveLength(1);
  expect(said.filter((words) => words.includes("IN_USE"))).toHaveLength(99);
  for (const words of said)
    expect([
      ["RESTORING", "RUNNING"],
      ["IN_USE", 1011],
    ]).toContainEqual(words);
  expect(server.backend.runningCount).toBe(1);
  expect(await winners[0]?.run("bash", "echo mine").until("EXECUTION_DONE")).toContain("out:mine\n");
});

test("of a hundred concurrent attaches to a live sandbox one succeeds", async () => {
  const server = await startTestServer({ store: null });
  const { client, id } = await server.create();
  await client.leave();
  const clients = Array.from({ length: 100 }, () => server.attach(id));
  const said = await Promise.all(clients.map((each) => each.outcome()));
  expect(said.filter((words) => words.includes("RUNNING"))).toEqual([["RUNNING"]]);
  expect(said.filter((words) => words.includes("IN_USE"))).toHaveLength(99);
});

test("live on another healthy server: in use", async () => {
  const store = await temporaryFolder();
  const [first, second] = [await startTestServer({ store }), await startTestServer({ store })];
  const { client, id } = await first.create(DURABLE);
  expect(await second.attach(id).untilClosed()).toEqual(["RESTORING", "IN_USE", 1011]);
  expect(await client.run("bash", "echo undisturbed").until("EXECUTION_DONE")).toContain("out:undisturbed\n");
});

test.each([
  ["", DURABLE, []],
  [" with handoff", { ...DURABLE, enable_sandbox_handoff: true }, ["LOCK_ACQUIRING", "LOCK_ACQUIRED"]],
])("the owner is dead%s: taken over at the newest checkpoint", async (_title, configuration, lock) => {
  const store = await temporaryFolder();
  const [first, second] = [await startTestServer({ store }), await startTestServer({ store })];
  const { client, id } = await first.create(configuration);
  await client.run("bash", "echo saved > file").until("EXECUTION_DONE");
  await client.send({ action: "checkpoint" }).untilClosed();
  const again = first.attach(id);
  await again.until("RUNNING");
  await again.run("bash", "echo unsaved > file").until("EXECUTION_DONE");
  await second.instances.markDead(first.instances.instanceId ?? "");
  const taken = second.attach(id);
  expect(await taken.until("RUNNING")).toEqual(["RESTORING", ...lock, "RUNNING"]);
  expect(await taken.run("bash", "cat file").until("EXECUTION_DONE")).toContain("out:saved\n");
  expect(await again.send({ action: "checkpoint" }).untilClosed()).toEqual([
    "CHECKPOINTING",
    "LOCK_RENEWAL_ERROR",
    expect.stringMatching(/^error:./),
    4000,
  ]);
  expect(await taken.run("bash", "cat file").until("EXECUTION_DONE")).toContain("out:saved\n");
});

test("the owner is dead and never saved", async () => {
  const store = await temporaryFolder();
  const [first, second] = [await startTestServer({ store }), await startTestServer({ store })];
  const { id } = await first.create(DURABLE);
  await second.instances.markDead(first.instances.instanceId ?? "");
  expect(await second.attach(id).untilClosed()).toEqual(["RESTORING", "NOT_FOUND", 1011]);
});

test("a folder in the seed's layout, without a head, is restored by its latest", async () => {
  const [from, to] = [await startTestServer(), await startTestServer()];
  const { client, id } = await from.create(DURABLE);
  await client.run("bash", "echo imported > file").until("EXECUTION_DONE");
  await client.send({ action: "checkpoint" }).untilClosed();
  const folder = join(to.storeFolder ?? "", id);
  await cp(join(from.storeFolder ?? "", id, "checkpoints"), join(folder, "checkpoints"), { recursive: true });
  await writeFile(
    join(folder, "metadata.json"),
    JSON.stringify({
      status: "checkpointed",
      createdAt: "2025-01-01T00:00:00Z",
      lastCheckpointedAt: "2025-01-01T00:00:00Z",
      idle_timeout: 60,
    }),
  );
  const again = to.attach(id);
  expect(await again.until("RUNNING")).toEqual(["RESTORING", "RUNNING"]);
  expect(await again.run("bash", "cat file").until("EXECUTION_DONE")).toContain("out:imported\n");
  expect(await again.send({ action: "checkpoint" }).untilClosed()).toEqual(["CHECKPOINTING", "CHECKPOINTED", 1000]);
  const third = to.attach(id);
  expect(await third.until("RUNNING")).toEqual(["RESTORING", "RUNNING"]);
});

test("an import that finds no room is still available to other servers", async () => {
  const [from, to] = [await startTestServer(), await startTestServer({ maxSandboxes: 1 })];
  const { client, id } = await from.create(DURABLE);
  await client.send({ action: "checkpoint" }).untilClosed();
  await cp(join(from.storeFolder ?? "", id, "checkpoints"), join(to.storeFolder ?? "", id, "checkpoints"), {
    recursive: true,
  });
  await to.create();
  expect((await to.attach(id).untilClosed()).at(-1)).toBe(4000);
  const another = await startTestServer({ store: to.storeFolder ?? null });
  expect(await another.attach(id).outcome()).toEqual(["RESTORING", "RUNNING"]);
});

test("of many concurrent imports, one succeeds", async () => {
  const [from, to] = [await startTestServer(), await startTestServer()];
  const { client, id } = await from.create(DURABLE);
  await client.send({ action: "checkpoint" }).untilClosed();
  await cp(join(from.storeFolder ?? "", id, "checkpoints"), join(to.storeFolder ?? "", id, "checkpoints"), {
    recursive: true,
  });
  const clients = Array.from({ length: 20 }, () => to.attach(id));
  const said = await Promise.all(clients.map((each) => each.outcome()));
  for (const words of said)
    expect([
      ["RESTORING", "RUNNING"],
      ["IN_USE", 1011],
    ]).toContainEqual(words);
  expect(said.filter((words) => words.includes("RUNNING"))).toHaveLength(1);
  expect(to.backend.runningCount).toBe(1);
});

test("kill_sandbox removes the stored data, and leaves a mark so that the sandbox stays deleted", async () => {
  const server = await startTestServer();
  const { client, id } = await server.create({ ...DURABLE, enable_sandbox_handoff: true });
  await client.send({ action: "checkpoint" }).untilClosed();
  const again = server.attach(id);
  await again.until("RUNNING");
  expect(await again.send({ action: "kill_sandbox" }).untilClosed()).toEqual([
    "KILLING",
    "DELETING",
    "LOCK_RELEASING",
    "LOCK_RELEASED",
    "DELETED",
    "KILLED",
    1000,
  ]);
  const folder = join(server.storeFolder ?? "", id);
  await eventually("no image is left", async () =>
    (await readdir(folder, { recursive: true })).every((name) => !name.endsWith(".img")),
  );
  expect(await server.attach(id).untilClosed()).toEqual(["RESTORING", "NOT_FOUND", 1011]);
  expect(server.backend.runningCount).toBe(0);
  await rm(folder, { recursive: true });
});

test("kill_sandbox while something executes", async () => {
  const server = await startTestServer({ store: null });
  const { client } = await server.create();
  await client.run("bash", "while true; do echo x; sleep 0.001; done").until("out:");
  const came = (await client.send({ action: "kill_sandbox" }).untilClosed()).filter(
    (word) => !String(word).startsWith("out:"),
  );
  expect(came).toEqual(["KILLING", "DELETING", "DELETED", "KILLED", 1000]);
});
