import { readdir, readFile } from "node:fs/promises";
import { join } from "node:path";
import { SandboxerError } from "@sandboxer/protocol";
import { describe, expect, test } from "vitest";
import { eventually } from "../../../../../test/kit/eventually.ts";
import { temporaryFolder } from "../../../../../test/kit/temporary-folder.ts";
import { startTestServer } from "../../../../../test/kit/server/test-server.ts";

const DURABLE = { enable_checkpoint: true };
const LEASED = { enable_checkpoint: true, enable_sandbox_handoff: true };

test("checkpoint, then attach: everything is restored", async () => {
  const server = await startTestServer();
  const { client, id } = await server.create(DURABLE);
  await client.run("bash", "echo kept > file").until("EXECUTION_DONE");
  expect(await client.send({ action: "checkpoint" }).untilClosed()).toEqual(["CHECKPOINTING", "CHECKPOINTED", 1000]);
  await eventually("the copy is gone", () => server.backend.runningCount === 0);
  const again = server.attach(id);
  expect(await again.until("RUNNING")).toEqual(["RESTORING", "RUNNING"]);
  expect(await again.run("bash", "cat file").until("EXECUTION_DONE")).toEqual([
    "EXECUTION_RUNNING",
    "out:kept\n",
    "EXECUTION_DONE",
  ]);
});

test("with handoff the client learns of the lock, at checkpoint and restore", async () => {
  const server = await startTestServer();
  const { client, id } = await server.create(LEASED);
  expect(await client.send({ action: "checkpoint" }).untilClosed()).toEqual([
    "CHECKPOINTING",
    "LOCK_RELEASING",
    "LOCK_RELEASED",
    "CHECKPOINTED",
    1000,
  ]);
  expect(await server.attach(id).until("RUNNING")).toEqual(["RESTORING", "LOCK_ACQUIRING", "LOCK_ACQUIRED", "RUNNING"]);
});

test("another server with the same store resumes it", async () => {
  const store = await temporaryFolder();
  const [first, second] = [await startTestServer({ store }), await startTestServer({ store })];
  const { client, id } = await first.create(DURABLE);
  const counting = "(i=0; while true; do i=$((i+1)); echo $i > count; sleep 0.005; done) > /dev/null 2>&1 &";
  await client.run("bash", counting).until("EXECUTION_DONE");
  await client.send({ action: "checkpoint" }).untilClosed();
  const again = second.attach(id);
  expect(await again.until("RUNNING")).toEqual(["RESTORING", "RUNNING"]);
  const count = async (): Promise<number> => {
    await again.run("bash", "cat count").until("EXECUTION_DONE");
    return Number(again.output.trim().split("\n").at(-1));
  };
  const before = await count();
  await eventually("the counter goes on", async () => (await count()) > before);
});

test("the store has the layout of the protocol when the checkpoint is acknowledged", async () => {
  const server = await startTestServer();
  const { client, id } = await server.create(DURABLE);
  await client.send({ action: "checkpoint" }).until("CHECKPOINTED");
  const folder = join(server.storeFolder ?? "", id);
  const latest = await readFile(join(folder, "checkpoints", "latest"), "utf8");
  expect(latest).toMatch(/^checkpoint_\d+\.img$/);
  expect(await readdir(join(folder, "checkpoints"))).toContain(latest);
  const metadata = JSON.parse(await readFile(join(folder, "metadata.json"), "utf8")) as Record<string, unknown>;
  expect(metadata).toMatchObject({
    status: "checkpointed",
    createdAt: expect.any(String),
    lastCheckpointedAt: expect.any(String),
    idle_timeout: 300,
  });
});

test("the token is nowhere in the store", async () => {
  const server = await startTestServer();
  const { client, id, token } = await server.create(DURABLE);
  await client.send({ action: "checkpoint" }).untilClosed();
  const folder = join(server.storeFolder ?? "", id);
  const files = (await readdir(folder, { recursive: true, withFileTypes: true })).filter((entry) => entry.isFile());
  expect(files).not.toEqual([]);
  for (const { parentPath, name } of files) {
    expect(await readFile(join(parentPath, name), "latin1")).not.toContain(token);
  }
});

test("while executing: refused, and the execution continues", async () => {
  const server = await startTestServer();
  const { client } = await server.create(DURABLE);
  await client.run("bash", "read x; echo $x").until("EXECUTION_RUNNING");
  expect(await client.send({ action: "checkpoint" }).until("error")).toEqual([
    "CHECKPOINTING",
    "EXECUTION_IN_PROGRESS_ERROR",
    "error:Cannot checkpoint while an execution is in progress.",
  ]);
  expect(await client.send({ event: "stdin", data: "on\n" }).until("EXECUTION_DONE")).toEqual([
    "out:on\n",
    "EXECUTION_DONE",
  ]);
  expect(await client.send({ action: "checkpoint" }).untilClosed()).toEqual(["CHECKPOINTING", "CHECKPOINTED", 1000]);
});

describe.each([
  ["with a store", undefined],
  ["without a store", null],
])("%s", (_title, store) => {
  test("of a sandbox created without the flag: refused, and the sandbox is kept", async () => {
    const server = await startTestServer(store === null ? { store } : {});
    const { client, id } = await server.create();
    await client.run("bash", "echo kept > file").until("EXECUTION_DONE");
    expect(await client.send({ action: "checkpoint" }).untilClosed()).toEqual([
      "CHECKPOINTING",
      "CHECKPOINT_ERROR",
      expect.stringMatching(/^error:./),
      4000,
    ]);
    const again = server.attach(id);
    expect(await again.until("RUNNING")).toEqual(["RUNNING"]);
    expect(await again.run("bash", "cat file").until("EXECUTION_DONE")).toContain("out:kept\n");
  });
});

test.each([
  ["the backend's save fails", { error: new SandboxerError("internal", "no luck") }, "internal"],
  ["the disk is full in the middle of the save", { damage: "half_written" }, "no_space"],
] as const)("%s: alive, attachable at once, and the old checkpoint is intact", async (_what, fault, code) => {
  const server = await startTestServer();
  const { client, id } = await server.create(DURABLE);
  await client.run("bash", "echo old > file").until("EXECUTION_DONE");
  await client.send({ action: "checkpoint" }).untilClosed();
  const second = server.attach(id);
  await second.until("RUNNING");
  await second.run("bash", "echo new > file").until("EXECUTION_DONE");
  server.backend.faults.set("snapshot", { ...fault, times: 1 });
  expect(await second.send({ action: "checkpoint" }).untilClosed()).toEqual([
    "CHECKPOINTING",
    "CHECKPOINT_ERROR",
    expect.stringMatching(/^error:./),
    4000,
  ]);
  expect(await second.event("error")).toMatchObject({ code });
  const third = server.attach(id);
  expect(await third.until("RUNNING")).toEqual(["RUNNING"]);
  expect(await third.run("bash", "cat file").until("EXECUTION_DONE")).toContain("out:new\n");
  const stored = await server.durable.checkpoints.list(id);
  expect(stored).toHaveLength(1);
  server.backend.crash(id);
  await third.closed;
  const fourth = server.attach(id);
  expect(await fourth.until("RUNNING")).toEqual(["RESTORING", "RUNNING"]);
  expect(await fourth.run("bash", "cat file").until("EXECUTION_DONE")).toContain("out:old\n");
});

test("a failed save releases the sandbox, even if the client does not learn of it", async () => {
  const server = await startTestServer();
  const { client, id } = await server.create(DURABLE);
  server.backend.faults.set("snapshot", { error: new SandboxerError("internal", "no luck"), times: 1 });
  client.send({ action: "checkpoint" });
  client.tcp.pause();
  await eventually("it has failed", () => server.operations.some(({ operation }) => operation === "checkpoint"));
  expect(await server.attach(id).outcome()).toEqual(["RUNNING"]);
});

test("the store is full while the image is written: alive, and nothing half-written is left", async () => {
  let full = false;
  const server = await startTestServer({
    wrapStore: (store) =>
      new Proxy(store, {
        get: (target, name) => {
          const value: unknown = Reflect.get(target, name, target);
          if (typeof value !== "function") return value;
          if (name !== "write" || !full) return value.bind(target) as unknown;
          return () => Promise.reject(new SandboxerError("no_space", "No space left on the device (/store)."));
        },
      }),
  });
  const { client, id } = await server.create(DURABLE);
  full = true;
  expect(await client.send({ action: "checkpoint" }).untilClosed()).toEqual([
    "CHECKPOINTING",
    "CHECKPOINT_ERROR",
    expect.stringContaining("/store"),
    4000,
  ]);
  full = false;
  const again = server.attach(id);
  expect(await again.until("RUNNING")).toEqual(["RUNNING"]);
  expect(await again.send({ action: "checkpoint" }).untilClosed()).toEqual(["CHECKPOINTING", "CHECKPOINTED", 1000]);
  expect(await server.durable.checkpoints.list(id)).toHaveLength(1);
});

test("only the newest are kept, and ten rounds lose nothing", async () => {
  const server = await startTestServer({ retention: { checkpoints: { keep_last: 2 } } });
  const { client, id } = await server.create(DURABLE);
  await client.run("bash", "echo 0 > rounds").until("EXECUTION_DONE");
  await client.send({ action: "checkpoint" }).untilClosed();
  for (let round = 1; round <= 10; round += 1) {
    const again = server.attach(id);
    await again.until("RUNNING");
    await again.run("bash", `echo ${round} >> rounds`).until("EXECUTION_DONE");
    expect(await again.send({ action: "checkpoint" }).untilClosed()).toEqual(["CHECKPOINTING", "CHECKPOINTED", 1000]);
  }
  await eventually("two are left", async () => (await server.durable.checkpoints.list(id))?.length === 2);
  const last = server.attach(id);
  await last.until("RUNNING");
  expect(await last.run("bash", "cat rounds").until("EXECUTION_DONE")).toContain(
    `out:${[0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10].join("\n")}\n`,
  );
});
