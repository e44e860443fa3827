import { SandboxerError } from "@sandboxer/protocol";
import { describe, expect, test } from "vitest";
import { startTestServer } from "../../../../../test/kit/server/test-server.ts";

const DURABLE = { enable_checkpoint: true };

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

  test("a silent client is disconnected with 1012", async () => {
    const server = await startTestServer();
    const silent = server.connect("/create");
    await silent.opened;
    await server.drain();
    expect(await silent.untilClosed()).toEqual([1012]);
  });

  test("a save in progress is finished first", async () => {
    const server = await startTestServer();
    const { client, id } = await server.create(DURABLE);
    const held = Promise.withResolvers<void>();
    server.backend.faults.set("snapshot", { until: held.promise });
    await client.send({ action: "checkpoint" }).until("CHECKPOINTING");
    const drained = server.drain();
    held.resolve();
    await drained;
    expect(await client.untilClosed()).toEqual(["CHECKPOINTED", 1000]);
    expect(await server.durable.checkpoints.list(id)).toHaveLength(1);
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

  test("a creation in progress ends before", async () => {
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

  test("a save that fails is reported", async () => {
    const server = await startTestServer();
    const { client } = await server.create(DURABLE);
    server.backend.faults.set("snapshot", { error: new SandboxerError("internal", "no luck") });
    await server.drain();
    expect(await client.untilClosed()).toEqual(["CHECKPOINTING", "CHECKPOINT_ERROR", "error:no luck", 4000]);
  });
});

describe("a sandbox that ends on its own", () => {
  test.each([
    ["with a store", undefined],
    ["without a store", null],
  ])("is reported to its client, %s", async (_title, store) => {
    const server = await startTestServer(store === null ? { store } : {});
    const { client, id } = await server.create();
    await client.run("bash", "sleep 60").until("EXECUTION_RUNNING");
    server.backend.crash(id, "the engine died.");
    expect(await client.untilClosed()).toEqual(["ERROR", expect.stringContaining("the engine died"), 4000]);
    expect(await client.event("error")).toMatchObject({ code: "sandbox_failed" });
  });

  test("is resumed at its last checkpoint", async () => {
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
