import { expect, test } from "vitest";
import { eventually } from "../../../../../test/kit/eventually.ts";
import { startTestServer } from "../../../../../test/kit/server/test-server.ts";
import { meanwhile } from "../../../../../test/kit/meanwhile.ts";

const DURABLE = { enable_checkpoint: true };

test("before the first message", async () => {
  const server = await startTestServer();
  const client = server.connect("/create");
  await client.opened;
  client.terminate();
  await eventually("its socket is gone", () => server.sockets.size === 0);
  expect(server.operations).toEqual([]);
  expect(server.backend.runningCount).toBe(0);
});

test("during creation: nobody knows its id, so nothing is left", async () => {
  const server = await startTestServer();
  const held = Promise.withResolvers<void>();
  server.backend.faults.set("acquire", { until: held.promise });
  const client = server.connect("/create").send(DURABLE);
  await client.until("CREATING");
  client.terminate();
  await eventually("its socket is gone", () => server.sockets.size === 0);
  held.resolve();
  await eventually("it was made and destroyed", () =>
    server.operations.some(({ operation }) => operation === "destroy"),
  );
  expect(server.backend.runningCount).toBe(0);
  expect(server.manager.states()).toEqual({});
});

test("during an execution: it continues", async () => {
  const server = await startTestServer({ store: null });
  const { client, id } = await server.create();
  await client.run("bash", "sleep 0.1; echo through > file").until("EXECUTION_RUNNING");
  client.terminate();
  await eventually("it has ended", () => server.operations.some(({ operation }) => operation === "execute"));
  const again = server.attach(id);
  await again.until("RUNNING");
  expect(await again.run("bash", "cat file").until("EXECUTION_DONE")).toContain("out:through\n");
});

test("during a checkpoint: it is finished", async () => {
  const server = await startTestServer();
  const { client, id } = await server.create(DURABLE);
  await client.run("bash", "echo kept > file").until("EXECUTION_DONE");
  const held = Promise.withResolvers<void>();
  server.backend.faults.set("snapshot", { until: held.promise });
  await client.send({ action: "checkpoint" }).until("CHECKPOINTING");
  client.terminate();
  await eventually("its socket is gone", () => server.sockets.size === 0);
  held.resolve();
  await eventually("it is saved", () => server.operations.some(({ operation }) => operation === "checkpoint"));
  const again = server.attach(id);
  expect(await again.until("RUNNING")).toEqual(["RESTORING", "RUNNING"]);
  expect(await again.run("bash", "cat file").until("EXECUTION_DONE")).toContain("out:kept\n");
});

test("during a restore: it is finished, and free for the next", async () => {
  const server = await startTestServer();
  const { client, id } = await server.create(DURABLE);
  await client.send({ action: "checkpoint" }).untilClosed();
  const held = Promise.withResolvers<void>();
  server.backend.faults.set("acquireFromSnapshot", { until: held.promise });
  const second = server.attach(id);
  await second.until("RESTORING");
  second.terminate();
  await eventually("its socket is gone", () => server.sockets.size === 0);
  held.resolve();
  await eventually("it is restored", () => server.operations.some(({ operation }) => operation === "restore"));
  const third = server.attach(id);
  expect(await third.until("RUNNING")).toEqual(["RUNNING"]);
});

test("during a restore, with on_disconnect: it is saved again", async () => {
  const server = await startTestServer();
  const { client, id } = await server.create({ ...DURABLE, on_disconnect: "checkpoint" });
  await client.send({ action: "checkpoint" }).untilClosed();
  const held = Promise.withResolvers<void>();
  server.backend.faults.set("acquireFromSnapshot", { until: held.promise });
  const second = server.attach(id);
  await second.until("RESTORING");
  second.terminate();
  await eventually("its socket is gone", () => server.sockets.size === 0);
  held.resolve();
  await eventually(
    "it is saved again",
    () => server.operations.filter(({ operation }) => operation === "checkpoint").length === 2,
  );
  await eventually("no copy is left", () => server.backend.runningCount === 0);
});

test("during a filesystem snapshot: it is finished", async () => {
  const server = await startTestServer();
  const { client } = await server.create();
  const held = Promise.withResolvers<void>();
  server.backend.faults.set("snapshot", { until: held.promise });
  await client.send({ action: "snapshot_filesystem", name: "base" }).until("FILESYSTEM_SNAPSHOT_CREATING");
  client.terminate();
  held.resolve();
  await eventually("it is there", async () => (await server.durable.snapshots.get("base")) !== undefined);
});

test("during the end of the sandbox: it is deleted", async () => {
  const server = await startTestServer();
  const { client, id } = await server.create(DURABLE);
  const held = Promise.withResolvers<void>();
  server.backend.faults.set("destroy", { until: held.promise });
  await client.send({ action: "kill_sandbox" }).until("DELETING");
  client.terminate();
  held.resolve();
  await eventually("it is gone", () => server.backend.runningCount === 0);
  expect(await server.attach(id).untilClosed()).toEqual(["RESTORING", "NOT_FOUND", 1011]);
});

test("at any moment of a busy session, many times: no copy and no client is left behind", async () => {
  const server = await startTestServer();
  for (let round = 0; round < 40; round += 1) {
    const client = server.connect("/create").send({ ...DURABLE, idle_timeout: 0 });
    client.run("bash", "echo x; sleep 0.005; echo y").send({ action: "reconnect" }).send({ action: "checkpoint" });
    await client.opened;
    await meanwhile(round);
    client.terminate();
  }
  await eventually("all sockets are gone", () => server.sockets.size === 0);
  await eventually("all sandboxes are gone", () => Object.keys(server.manager.states()).length === 0);
  expect(server.backend.runningCount).toBe(0);
});
