import { describe, expect, test } from "vitest";
import { STATUSES } from "@sandboxer/protocol";
import { startTestServer } from "../../../../../test/kit/server/test-server.ts";

const CREATED = ["CREATING", "sandbox_id", "RUNNING"];

describe.each([
  ["with a store", undefined],
  ["without a store", null],
])("%s", (_title, store) => {
  const start = () => startTestServer(store === null ? { store } : {});

  test("an empty configuration creates a sandbox", async () => {
    const server = await start();
    const client = server.connect("/create").send({});
    expect(await client.until("RUNNING")).toEqual(CREATED);
    const { sandbox_id: id, sandbox_token: token } = await client.event("sandbox_id");
    expect(id).toMatch(/^[0-9a-f]{8}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{12}$/);
    expect(token).toMatch(/^[0-9a-f]{32,}$/);
    await client.leave();
    expect(client.rest()).toEqual([]);
  });

  test("options that are not requested are off", async () => {
    const server = await start();
    const { id } = await server.create({});
    const { facts } = await server.manager.running(id);
    expect(facts).toMatchObject({
      flags: {
        enable_checkpoint: false,
        enable_idle_timeout_auto_checkpoint: false,
        enable_sandbox_handoff: false,
        on_disconnect: "keep",
      },
      spec: { env: {}, resources: {}, network: "none" },
      idleTimeoutMs: 300_000,
    });
  });

  test("a missing profile is named", async () => {
    const server = await start();
    const client = server.connect("/create").send({ profile: "small" });
    expect((await client.event("error")).message).toContain("small");
  });

  test("unknown fields are ignored", async () => {
    const server = await start();
    const client = server.connect("/create").send({ idle_timeout: 60, colour: "blue", shape: "round" });
    expect(await client.until("RUNNING")).toEqual(CREATED);
  });

  test.each([
    ["negative time", { idle_timeout: -1 }],
    ["time that is a text", { idle_timeout: "60" }],
    ["time without end", '{"idle_timeout":1e999}'],
    ["time that is not a number", '{"idle_timeout":NaN}'],
    ["flag that is a text", { enable_checkpoint: "yes" }],
    ["flag that is null", { enable_checkpoint: null }],
    ["unknown on_disconnect", { on_disconnect: "explode" }],
    ["unknown backend", { backend: "abacus" }],
    ["backend that is a number", { backend: 5 }],
    ["environment with a bad name", { env: { "a=b": "c" } }],
    ["environment with NUL", { env: { A: "\0" } }],
    ["memory that is negative", { resources: { memory_mb: -5 } }],
    ["unknown network", { network: "everything" }],
    ["snapshot name that is a number", { filesystem_snapshot_name: 7 }],
    ["text that is not JSON", "create, please"],
    ["JSON that is a list", "[]"],
    ["JSON that is null", "null"],
    ["nothing at all", ""],
    ["binary frame", Buffer.from("{}")],
  ])("%s: refused, and nothing is left", async (_what, first) => {
    const server = await start();
    const client = server.connect("/create").send(first);
    const came = await client.untilClosed();
    expect(came).toEqual(["CREATING", "CREATION_ERROR", expect.stringMatching(/^error:./), 4000]);
    expect(server.backend.runningCount).toBe(0);
  });

  test("a silent client is refused after the waiting time", async () => {
    const server = await startTestServer({ ...(store === null ? { store } : {}), firstMessageMs: 50 });
    const client = server.connect("/create");
    expect(await client.untilClosed()).toEqual([
      "CREATING",
      "CREATION_ERROR",
      expect.stringContaining("error:No configuration"),
      4000,
    ]);
  });

  test("a backend that fails", async () => {
    const server = await start();
    const { SandboxerError } = await import("@sandboxer/protocol");
    server.backend.faults.set("acquire", { error: new SandboxerError("backend_unavailable", "no engine") });
    const client = server.connect("/create").send({});
    expect(await client.untilClosed()).toEqual(["CREATING", "CREATION_ERROR", "error:no engine", 4000]);
    expect(await client.event("error")).toMatchObject({ code: "backend_unavailable" });
  });

  test("more sandboxes than the limit", async () => {
    const server = await startTestServer({ ...(store === null ? { store } : {}), maxSandboxes: 1 });
    const { client } = await server.create();
    const second = server.connect("/create").send({});
    expect(await second.untilClosed()).toEqual([
      "CREATING",
      "CREATION_ERROR",
      expect.stringMatching(/^error:.*limit/),
      4000,
    ]);
    expect(await second.event("error")).toMatchObject({ code: "limit_reached" });
    await client.send({ action: "kill_sandbox" }).untilClosed();
    await server.create();
  });
});

test("with handoff the client learns of the lock", async () => {
  const server = await startTestServer();
  const client = server.connect("/create").send({ enable_checkpoint: true, enable_sandbox_handoff: true });
  expect(await client.until("RUNNING")).toEqual([
    "CREATING",
    "LOCK_ACQUIRING",
    "LOCK_ACQUIRED",
    "sandbox_id",
    "RUNNING",
  ]);
});

test.each([
  [
    "with a store",
    undefined,
    { enable_sandbox_handoff: true },
    "Sandbox handoff requires checkpointing to be enabled.",
  ],
  [
    "with a store",
    undefined,
    { enable_idle_timeout_auto_checkpoint: true },
    "Idle timeout auto checkpoint requires checkpointing to be enabled.",
  ],
  ["without a store", null, { enable_checkpoint: true }, "Checkpointing is not enabled on the server."],
  ["without a store", null, { enable_sandbox_handoff: true }, "Sandbox handoff requires checkpointing to be enabled."],
  ["without a store", null, { filesystem_snapshot_name: "base" }, "Filesystem snapshot is not enabled on the server."],
])("known text, %s (%s): %j", async (_title, store, configuration, text) => {
  const server = await startTestServer(store === null ? { store } : {});
  const client = server.connect("/create").send(configuration);
  expect(await client.untilClosed()).toEqual(["CREATING", "CREATION_ERROR", `error:${text}`, 4000]);
});

test("a missing snapshot", async () => {
  const server = await startTestServer();
  const client = server.connect("/create").send({ filesystem_snapshot_name: "nothing" });
  expect(await client.untilClosed()).toEqual(["CREATING", "CREATION_ERROR", expect.stringContaining("nothing"), 4000]);
  expect(server.backend.runningCount).toBe(0);
});

test("every status on the wire is in the protocol", async () => {
  const server = await startTestServer();
  const { client } = await server.create({ enable_checkpoint: true, enable_sandbox_handoff: true });
  await client.run("python", "print(1)").until("EXECUTION_DONE");
  await client.send({ action: "checkpoint" }).untilClosed();
  const seen = client.events.flatMap((event) => (event.event === "status_update" ? [event.status] : []));
  expect(seen.length).toBeGreaterThan(5);
  expect(seen.filter((status) => !STATUSES.includes(status))).toEqual([]);
});
