import { SandboxerError } from "@sandboxer/protocol";
import { describe, expect, test } from "vitest";
import { eventually } from "../../../../../test/kit/eventually.ts";
import { startTestServer } from "../../../../../test/kit/server/test-server.ts";

const DURABLE = { enable_checkpoint: true };
const SHORT = { idle_timeout: 0.7 };

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

  test("dropped without saving, the stored state stays at its last checkpoint", async () => {
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
    expect(await client.run("bash", "sleep 1.5; echo through").until("EXECUTION_DONE")).toContain("out:through\n");
    expect(await client.untilClosed()).toEqual(["DELETING", "DELETED", 1000]);
    clearInterval(pinging);
  });

  test("without a client it is ended too", async () => {
    const server = await startTestServer({ store: null });
    const { client } = await server.create(SHORT);
    await client.leave();
    await eventually("it is gone", () => server.backend.runningCount === 0);
  });

  test("a save that fails is reported, and the sandbox stays", async () => {
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

  test.each(["leave", "terminate"] as const)(
    "saves and releases when the client has disconnected (%s)",
    async (how) => {
      const server = await startTestServer();
      const { client, id } = await server.create(RELINQUISH);
      await client.run("bash", "echo kept > file").until("EXECUTION_DONE");
      await client[how]();
      await eventually("it is saved", () => server.operations.some(({ operation }) => operation === "checkpoint"));
      const again = server.attach(id);
      expect(await again.until("RUNNING")).toEqual(["RESTORING", "RUNNING"]);
      expect(await again.run("bash", "cat file").until("EXECUTION_DONE")).toContain("out:kept\n");
    },
  );

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

  test("is cancelled if the client returns before", async () => {
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
