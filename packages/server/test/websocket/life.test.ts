import { SandboxerError } from "@sandboxer/protocol";
import { describe, expect, test } from "vitest";
import { eventually } from "./support/eventually.ts";
import { startTestServer } from "./support/test-server.ts";

const DURABLE = { enable_checkpoint: true };
const SHORT = { idle_timeout: 0.3 };

describe("idle", () => {
  test.each([
    ["with a store", undefined],
    ["without a store", null],
  ])("dropped, with a client attached, %s", async (_title, store) => {
    const server = await startTestServer(store === null ? { store } : {});
    const { client, id } = await server.create(SHORT);
    expect(await client.untilClosed()).toEqual(["DELETING", "DELETED", 1000]);
    expect(server.backend.runningCount).toBe(0);
    expect((await server.attach(id).untilClosed()).at(-1)).toBe(1011);
  });

  test("saved, with a client attached", async () => {
    const server = await startTestServer();
    const { client, id } = await server.create({ ...SHORT, ...DURABLE, enable_idle_timeout_auto_checkpoint: true });
    await client.run("bash", "echo kept > file").until("EXECUTION_DONE");
    expect(await client.untilClosed()).toEqual(["CHECKPOINTING", "CHECKPOINTED", 1000]);
    const again = server.attach(id);
    expect(await again.until("RUNNING")).toEqual(["RESTORING", "RUNNING"]);
    expect(await again.run("bash", "cat file").until("EXECUTION_DONE")).toContain("out:kept\n");
  });

  test("dropped without saving, what is stored stays at its last checkpoint", async () => {
    const server = await startTestServer();
    const { client, id } = await server.create({ ...SHORT, ...DURABLE });
    await client.run("bash", "echo saved > file").until("EXECUTION_DONE");
    await client.send({ action: "checkpoint" }).untilClosed();
    const again = server.attach(id);
    await again.until("RUNNING");
    await again.run("bash", "echo unsaved > file").until("EXECUTION_DONE");
    expect(await again.untilClosed()).toEqual(["DELETING", "DELETED", 1000]);
    const third = server.attach(id);
    expect(await third.until("RUNNING")).toEqual(["RESTORING", "RUNNING"]);
    expect(await third.run("bash", "cat file").until("EXECUTION_DONE")).toContain("out:saved\n");
  });

  test("not while something executes; pings do not count", async () => {
    const server = await startTestServer({ store: null });
    const { client } = await server.create(SHORT);
    const pinging = setInterval(() => client.socket.ping(), 20);
    expect(await client.run("bash", "sleep 1; echo through").until("EXECUTION_DONE")).toContain("out:through\n");
    expect(await client.untilClosed()).toEqual(["DELETING", "DELETED", 1000]);
    clearInterval(pinging);
  });

  test("nobody attached: it goes all the same", async () => {
    const server = await startTestServer({ store: null });
    const { client } = await server.create(SHORT);
    await client.leave();
    await eventually("it is gone", () => server.backend.runningCount === 0);
  });

  test("a save that fails is told, and the sandbox stays", async () => {
    const server = await startTestServer();
    const { client, id } = await server.create({ ...SHORT, ...DURABLE, enable_idle_timeout_auto_checkpoint: true });
    server.backend.faults.set("snapshot", { error: new SandboxerError("internal", "no luck"), times: 1 });
    expect(await client.untilClosed()).toEqual(["CHECKPOINTING", "CHECKPOINT_ERROR", "error:no luck", 4000]);
    const again = server.attach(id);
    expect(await again.until("RUNNING")).toEqual(["RUNNING"]);
  });
});

describe("on_disconnect checkpoint", () => {
  const RELINQUISH = { ...DURABLE, on_disconnect: "checkpoint" };

  test.each(["leave", "terminate"] as const)("saves and releases when the client is gone (%s)", async (how) => {
    const server = await startTestServer();
    const { client, id } = await server.create(RELINQUISH);
    await client.run("bash", "echo kept > file").until("EXECUTION_DONE");
    await client[how]();
    await eventually("it is saved", () => server.operations.some(({ operation }) => operation === "checkpoint"));
    const again = server.attach(id);
    expect(await again.until("RUNNING")).toEqual(["RESTORING", "RUNNING"]);
    expect(await again.run("bash", "cat file").until("EXECUTION_DONE")).toContain("out:kept\n");
  });

  test("waits for the execution", async () => {
    const server = await startTestServer();
    const { client, id } = await server.create(RELINQUISH);
    await client.run("bash", "sleep 0.1; echo done > file").until("EXECUTION_RUNNING");
    await client.leave();
    await eventually("it is saved", () => server.operations.some(({ operation }) => operation === "checkpoint"));
    const again = server.attach(id).send({ action: "reconnect" });
    expect(await again.until("EXECUTION_DONE")).toEqual([
      "RESTORING",
      "RUNNING",
      "EXECUTION_RUNNING",
      "EXECUTION_DONE",
    ]);
    expect(await again.run("bash", "cat file").until("EXECUTION_DONE")).toContain("out:done\n");
  });

  test("is called off when the client is back before", async () => {
    const server = await startTestServer();
    const { client, id } = await server.create(RELINQUISH);
    await client.run("bash", "sleep 0.2; echo through").until("EXECUTION_RUNNING");
    await client.leave();
    const again = server.attach(id).send({ action: "reconnect" });
    expect(await again.until("EXECUTION_DONE")).toEqual([
      "RUNNING",
      "EXECUTION_RUNNING",
      "out:through\n",
      "EXECUTION_DONE",
    ]);
    expect(await again.run("bash", "echo still here").until("EXECUTION_DONE")).toContain("out:still here\n");
    expect(server.operations.filter(({ operation }) => operation === "checkpoint")).toEqual([]);
  });
});

describe("drain", () => {
  test("durable, other, and executing", async () => {
    const server = await startTestServer();
    const { client: durable } = await server.create(DURABLE);
    const { client: leased } = await server.create({ ...DURABLE, enable_sandbox_handoff: true });
    const { client: other } = await server.create();
    const { client: executing } = await server.create();
    await executing.run("bash", "sleep 60").until("EXECUTION_RUNNING");
    await server.drain();
    expect(await durable.untilClosed()).toEqual(["CHECKPOINTING", "CHECKPOINTED", 1012]);
    expect(await leased.untilClosed()).toEqual(["CHECKPOINTING", "CHECKPOINTED", 1012]);
    expect(await other.untilClosed()).toEqual(["DELETING", "DELETED", 1012]);
    expect(await executing.untilClosed()).toEqual(["DELETING", "DELETED", 1012]);
    expect(server.backend.runningCount).toBe(0);
  });

  test("a client that has said nothing is sent away with 1012", async () => {
    const server = await startTestServer();
    const silent = server.connect("/create");
    await silent.opened;
    await server.drain();
    expect(await silent.untilClosed()).toEqual([1012]);
  });

  test("a save that is under way is finished first", async () => {
    const server = await startTestServer();
    const { client, id } = await server.create(DURABLE);
    const held = Promise.withResolvers<void>();
    server.backend.faults.set("snapshot", { until: held.promise });
    await client.send({ action: "checkpoint" }).until("CHECKPOINTING");
    const drained = server.drain();
    held.resolve();
    await drained;
    expect(await client.untilClosed()).toEqual(["CHECKPOINTED", 1000]);
    expect(await server.durable?.checkpoints.list(id)).toHaveLength(1);
  });

  test("new clients are refused meanwhile", async () => {
    const server = await startTestServer();
    const { client } = await server.create(DURABLE);
    const held = Promise.withResolvers<void>();
    server.backend.faults.set("snapshot", { until: held.promise });
    const drained = server.drain();
    await client.until("CHECKPOINTING");
    const late = server.connect("/create");
    await expect(late.opened).rejects.toThrow("503");
    held.resolve();
    await drained;
    expect(await client.untilClosed()).toEqual(["CHECKPOINTED", 1012]);
  });

  test("a creation that is under way ends before", async () => {
    const server = await startTestServer();
    const held = Promise.withResolvers<void>();
    server.backend.faults.set("acquire", { until: held.promise });
    const client = server.connect("/create").send(DURABLE);
    await client.until("CREATING");
    const drained = server.drain();
    held.resolve();
    await drained;
    expect(await client.untilClosed()).toEqual(["sandbox_id", "RUNNING", "CHECKPOINTING", "CHECKPOINTED", 1012]);
  });

  test("a save that fails is told", async () => {
    const server = await startTestServer();
    const { client } = await server.create(DURABLE);
    server.backend.faults.set("snapshot", { error: new SandboxerError("internal", "no luck") });
    await server.drain();
    expect(await client.untilClosed()).toEqual(["CHECKPOINTING", "CHECKPOINT_ERROR", "error:no luck", 4000]);
  });
});

describe("a sandbox that ends by itself", () => {
  test.each([
    ["with a store", undefined],
    ["without a store", null],
  ])("is told to its client, %s", async (_title, store) => {
    const server = await startTestServer(store === null ? { store } : {});
    const { client, id } = await server.create();
    await client.run("bash", "sleep 60").until("EXECUTION_RUNNING");
    server.backend.crash(id, "the engine died.");
    expect(await client.untilClosed()).toEqual(["ERROR", expect.stringContaining("the engine died"), 4000]);
    expect(await client.event("error")).toMatchObject({ code: "sandbox_failed" });
  });

  test("comes back at its last checkpoint", async () => {
    const server = await startTestServer();
    const { client, id } = await server.create(DURABLE);
    await client.run("bash", "echo saved > file").until("EXECUTION_DONE");
    await client.send({ action: "checkpoint" }).untilClosed();
    const again = server.attach(id);
    await again.until("RUNNING");
    server.backend.crash(id);
    await again.closed;
    const third = server.attach(id);
    expect(await third.until("RUNNING")).toEqual(["RESTORING", "RUNNING"]);
    expect(await third.run("bash", "cat file").until("EXECUTION_DONE")).toContain("out:saved\n");
  });
});

describe("filesystem snapshot", () => {
  test("is made, and new sandboxes start from it", async () => {
    const server = await startTestServer();
    const { client } = await server.create();
    await client.run("bash", "echo shared > file").until("EXECUTION_DONE");
    expect(
      await client.send({ action: "snapshot_filesystem", name: "base" }).until("FILESYSTEM_SNAPSHOT_CREATED"),
    ).toEqual(["FILESYSTEM_SNAPSHOT_CREATING", "FILESYSTEM_SNAPSHOT_CREATED"]);
    await client.run("bash", "echo changed > file").until("EXECUTION_DONE");
    const { client: fresh } = await server.create({ filesystem_snapshot_name: "base" });
    expect(await fresh.run("bash", "cat file").until("EXECUTION_DONE")).toContain("out:shared\n");
  });

  test("while executing: the execution goes on", async () => {
    const server = await startTestServer();
    const { client } = await server.create();
    await client.run("bash", "read x; echo $x").until("EXECUTION_RUNNING");
    expect(
      await client.send({ action: "snapshot_filesystem", name: "base" }).until("FILESYSTEM_SNAPSHOT_CREATED"),
    ).toEqual(["FILESYSTEM_SNAPSHOT_CREATING", "FILESYSTEM_SNAPSHOT_CREATED"]);
    expect(await client.send({ event: "stdin", data: "on\n" }).until("EXECUTION_DONE")).toEqual([
      "out:on\n",
      "EXECUTION_DONE",
    ]);
  });

  test.each([
    ["a name with a path", { name: "../../etc" }],
    ["a name that is too long", { name: "x".repeat(200) }],
    ["a name with NUL", { name: "a\0b" }],
  ])("%s", async (_what, fields) => {
    const server = await startTestServer();
    const { client } = await server.create();
    expect(await client.send({ action: "snapshot_filesystem", ...fields }).until("error")).toEqual([
      "FILESYSTEM_SNAPSHOT_CREATING",
      "FILESYSTEM_SNAPSHOT_ERROR",
      expect.stringMatching(/^error:./),
    ]);
    expect(await client.run("bash", "echo on").until("EXECUTION_DONE")).toContain("out:on\n");
  });

  test.each([[{}], [{ name: "" }], [{ name: 5 }]])("no name: %j", async (fields) => {
    const server = await startTestServer();
    const { client } = await server.create();
    const came = await client.send({ action: "snapshot_filesystem", ...fields }).until("error");
    expect(came).toEqual([
      "FILESYSTEM_SNAPSHOT_CREATING",
      "FILESYSTEM_SNAPSHOT_ERROR",
      expect.stringMatching(/^error:./),
    ]);
  });

  test("on a server without a store", async () => {
    const server = await startTestServer({ store: null });
    const { client } = await server.create();
    expect(await client.send({ action: "snapshot_filesystem", name: "base" }).until("error")).toEqual([
      "FILESYSTEM_SNAPSHOT_CREATING",
      "FILESYSTEM_SNAPSHOT_ERROR",
      "error:Filesystem snapshot is not enabled on the server.",
    ]);
  });
});
