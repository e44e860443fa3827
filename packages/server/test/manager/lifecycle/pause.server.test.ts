import { SandboxerError } from "@sandboxer/protocol";
import { expect, test } from "vitest";
import type { SandboxClient } from "../../../src/manager/client.ts";
import { eventually } from "../../../../../test/kit/eventually.ts";
import { startTestServer } from "../../../../../test/kit/server/test-server.ts";
import { meanwhile } from "../../../../../test/kit/meanwhile.ts";

const DURABLE = { enable_checkpoint: true };

function silentClient(): SandboxClient & { notices: string[] } {
  const notices: string[] = [];
  return { notices, notify: ({ type }) => notices.push(type), quiesce: async () => {} };
}

const nothing = (): void => {};

test("a client that returns at the moment the other leaves keeps the sandbox", async () => {
  const server = await startTestServer();
  const { client, id } = await server.create({ ...DURABLE, on_disconnect: "checkpoint" });
  await client.run("bash", "sleep 1000").until("EXECUTION_RUNNING");
  await client.leave();
  const attach = (each: SandboxClient) =>
    server.manager.attach({
      sandboxId: id,
      credentials: { token: undefined, trusted: true },
      client: each,
      checkpoint: undefined,
      onRestoring: nothing,
      onOwnership: nothing,
    });
  const first = silentClient();
  const sandbox = await attach(first);
  await sandbox.processes.execution?.kill();
  await sandbox.processes.execution?.exited;
  const second = silentClient();
  server.manager.detach(sandbox, first);
  await attach(second);
  await meanwhile(50);
  expect(second.notices).toEqual([]);
  expect(server.operations.filter(({ operation }) => operation === "checkpoint")).toEqual([]);
  server.manager.detach(sandbox, second);
  await eventually("it is saved then", () => server.operations.some(({ operation }) => operation === "checkpoint"));
});

test("a restored sandbox that cannot list its processes is ended and released", async () => {
  let broken = true;
  const server = await startTestServer({
    wrapBackend: (backend) =>
      new Proxy(backend, {
        get: (target, name) => {
          const value: unknown = Reflect.get(target, name, target);
          if (name !== "acquireFromSnapshot" || !broken)
            return typeof value === "function" ? (value.bind(target) as unknown) : value;
          return async (...parameters: Parameters<typeof target.acquireFromSnapshot>) => {
            const handle = await target.acquireFromSnapshot(...parameters);
            handle.processes = () => Promise.reject(new SandboxerError("internal", "no answer"));
            return handle;
          };
        },
      }),
  });
  const { client, id } = await server.create(DURABLE);
  await client.send({ action: "checkpoint" }).untilClosed();
  expect(await server.attach(id).untilClosed()).toEqual(["RESTORING", "RESTORE_ERROR", "error:no answer", 4000]);
  await eventually("no copy is left", () => server.backend.runningCount === 0);
  expect(server.durable.ownership.held(id)).toBeUndefined();
  broken = false;
  expect(await server.attach(id).outcome()).toEqual(["RESTORING", "RUNNING"]);
});

test("an idle sandbox is paused even if its end, or its release, fails", async () => {
  const server = await startTestServer();
  server.backend.faults.set("destroy", { error: new SandboxerError("internal", "it clings"), times: 1 });
  const { client, id } = await server.create({ ...DURABLE, idle_timeout: 0.2 });
  expect(await client.untilClosed()).toEqual(["DELETING", "DELETED", 1000]);
  expect(server.manager.states()).toEqual({});
  expect(server.problems).toEqual([expect.stringContaining("it clings")]);
  expect(await server.attach(id).untilClosed()).toEqual(["RESTORING", "NOT_FOUND", 1011]);
});

test("a sandbox whose end failed can be killed again", async () => {
  const server = await startTestServer();
  const { client, id } = await server.create(DURABLE);
  server.backend.faults.set("destroy", { error: new SandboxerError("internal", "it clings"), times: 1 });
  expect(await client.send({ action: "kill_sandbox" }).until("error")).toEqual([
    "KILLING",
    "DELETING",
    "KILL_ERROR",
    "error:it clings",
  ]);
  expect(await client.send({ action: "kill_sandbox" }).untilClosed()).toEqual([
    "KILLING",
    "DELETING",
    "DELETED",
    "KILLED",
    1000,
  ]);
  expect(server.backend.runningCount).toBe(0);
  expect(await server.attach(id).untilClosed()).toEqual(["RESTORING", "NOT_FOUND", 1011]);
});

test("a sandbox whose end failed cannot be attached", async () => {
  const server = await startTestServer();
  const { client, id } = await server.create(DURABLE);
  server.backend.faults.set("destroy", { error: new SandboxerError("internal", "it clings"), times: 1 });
  await client.send({ action: "kill_sandbox" }).until("error");
  await client.leave();
  expect((await server.attach(id).untilClosed()).slice(-2)).toEqual(["NOT_FOUND", 1011]);
});

test("a sandbox that can neither be saved, continue nor be ended is dropped, and its older checkpoint is free", async () => {
  const server = await startTestServer();
  const { client, id } = await server.create(DURABLE);
  await client.send({ action: "checkpoint" }).untilClosed();
  const second = server.attach(id);
  await second.until("RUNNING");
  await second.leave();
  const sandbox = await server.manager.running(id);
  for (const operation of ["snapshot", "thaw", "destroy"] as const) {
    server.backend.faults.set(operation, { error: new SandboxerError("internal", `no ${operation}`), times: 1 });
  }
  await expect(server.manager.pause(sandbox)).rejects.toThrow("no snapshot");
  expect(server.manager.states()).toEqual({});
  expect(server.problems).toEqual([expect.stringContaining("no thaw"), expect.stringContaining("no destroy")]);
  await eventually("it is given back", () => server.durable.ownership.held(id) === undefined);
  expect(await server.attach(id).outcome()).toEqual(["RESTORING", "RUNNING"]);
});

test("a sandbox that dies during its save is reported as dead, and its older checkpoint is free", async () => {
  const server = await startTestServer();
  const { client, id } = await server.create(DURABLE);
  await client.send({ action: "checkpoint" }).untilClosed();
  const second = server.attach(id);
  await second.until("RUNNING");
  const held = Promise.withResolvers<void>();
  server.backend.faults.set("snapshot", { until: held.promise, times: 1 });
  await second.send({ action: "checkpoint" }).until("CHECKPOINTING");
  server.backend.crash(id, "the engine died.");
  held.resolve();
  expect((await second.untilClosed()).slice(-2)).toEqual([expect.stringContaining("the engine died"), 4000]);
  expect(await server.attach(id).outcome()).toEqual(["RESTORING", "RUNNING"]);
});

test("a server that was declared dead discards its durable copies and informs their clients", async () => {
  const server = await startTestServer();
  const { client: durable } = await server.create(DURABLE);
  const { client: other } = await server.create();
  await server.manager.loseOwnership(new SandboxerError("lease_lost", "declared dead"));
  expect(await durable.untilClosed()).toEqual(["LOCK_RENEWAL_ERROR", "error:declared dead", 4000]);
  expect(server.backend.runningCount).toBe(1);
  expect(await other.run("bash", "echo on").until("EXECUTION_DONE")).toContain("out:on\n");
});

test("metrics count what happened", async () => {
  const server = await startTestServer();
  const { client } = await server.create(DURABLE);
  await client.run("bash", "printf 12345").until("EXECUTION_DONE");
  const text = await (await fetch(`${server.httpUrl}/metrics`)).text();
  expect(text).toMatch(/^sandboxer_sandboxes\{state="running"\} 1$/m);
  expect(text).toMatch(/^sandboxer_sandboxes_dozing 0$/m);
  expect(text).toMatch(/^sandboxer_clients 1$/m);
  expect(text).toMatch(/^sandboxer_output_bytes_total 5$/m);
  for (const operation of ["create", "execute"])
    expect(text).toMatch(
      new RegExp(`^sandboxer_operation_seconds_count\\{operation="${operation}",outcome="ok"\\} 1$`, "m"),
    );
});
