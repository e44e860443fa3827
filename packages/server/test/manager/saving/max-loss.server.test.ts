import { type EventRecord, type OperationRecordBody, SandboxerError, type SandboxRecord } from "@sandboxer/protocol";
import { describe, expect, test, vi } from "vitest";
import { HttpClient } from "../../gateway/http/support.ts";
import { startTestServer, type TestServer } from "../../../../../test/kit/server/test-server.ts";
import { absentableStore } from "../support/absentable-store.ts";

const PATIENCE = { timeout: 60_000 };

async function told(server: TestServer, id: string, type: string): Promise<EventRecord["data"][]> {
  const path = `/v1/events?sandbox_id=${id}&type=${type}&limit=1000`;
  const { body } = await new HttpClient(server).call<{ items: EventRecord[] }>("GET", path);
  return body.items.map(({ data }) => data);
}

async function untilTold(server: TestServer, id: string, type: string, count = 1): Promise<EventRecord["data"][]> {
  await vi.waitFor(async () => {
    expect((await told(server, id, type)).length).toBeGreaterThanOrEqual(count);
  }, PATIENCE);
  return told(server, id, type);
}

async function run(http: HttpClient, id: string, shell = "true"): Promise<void> {
  expect((await http.call("POST", `/v1/sandboxes/${id}/exec`, { shell })).status).toBe(200);
}

async function underWay(http: HttpClient): Promise<number> {
  const { body } = await http.call<{ items: OperationRecordBody[] }>("GET", "/v1/operations");
  return body.items.filter(({ kind, state }) => kind === "checkpoint" && state === "running").length;
}

async function metric(server: TestServer): Promise<string | undefined> {
  const text = await (await fetch(`${server.httpUrl}/metrics`)).text();
  return /^sandboxer_sandboxes_at_risk (\d+)$/m.exec(text)?.[1];
}

describe("a sandbox is saved, and keeps running,", () => {
  test("when as many executions have ended as its promise allows for", async () => {
    const server = await startTestServer();
    const http = new HttpClient(server);
    const { id } = await http.create({ max_loss: 1 });
    await run(http, id, "echo one > file");
    const [saved] = await untilTold(server, id, "checkpoint.created");
    expect(saved).toMatchObject({ reason: "max_loss", left_running: true, parent: null });
    expect(saved?.["paused_ms"]).toBeGreaterThan(0);
    const { state, durability, checkpoint } = await http.get(id);
    expect([state, durability]).toEqual([
      "running",
      { max_loss: 1, last_saved_at: checkpoint?.created_at, at_risk: null },
    ]);
  });

  test("when its time is nearly used up, and only if something can have changed", async () => {
    const server = await startTestServer();
    const http = new HttpClient(server);
    const [idle, busy] = [await http.create({ max_loss: "1s" }), await http.create({ max_loss: "1s" })];
    await http.call("POST", `/v1/sandboxes/${busy.id}/exec`, { shell: "read line", wait: false });
    await untilTold(server, busy.id, "checkpoint.created", 3);
    // The other one has had the same time, and was the same all the while.
    expect(await told(server, idle.id, "checkpoint.created")).toHaveLength(1);
    await fetch(`${server.httpUrl}/v1/sandboxes/${idle.id}/files?path=/workspace/file`, {
      method: "PUT",
      body: "bytes",
    });
    await untilTold(server, idle.id, "checkpoint.created", 2);
  });

  test("even if a process was started between the check and the capture", async () => {
    const server = await startTestServer();
    const http = new HttpClient(server);
    const { id } = await http.create({ max_loss: "1s" });
    const { handle } = await server.live(id);
    const looked = vi.spyOn(handle, "processTable");
    const held = Promise.withResolvers<void>();
    server.backend.faults.set("exec", { until: held.promise, times: 1 });
    const started = http.call("POST", `/v1/sandboxes/${id}/exec`, { shell: "read line", wait: false });
    await vi.waitFor(() => expect(looked).toHaveBeenCalled(), PATIENCE);
    await looked.mock.results[0]?.value;
    held.resolve();
    await started;
    await untilTold(server, id, "checkpoint.created", 3);
  });

  test("at once when more was done before the promise than it allows for", async () => {
    const server = await startTestServer();
    const http = new HttpClient(server);
    const { id } = await http.create();
    for (let turn = 0; turn < 3; turn++) await run(http, id);
    await http.call("PATCH", `/v1/sandboxes/${id}`, { max_loss: 3 });
    await untilTold(server, id, "checkpoint.created");
  });

  test("over WebSocket too, without a message", async () => {
    const server = await startTestServer();
    const { client, id } = await server.create({ enable_checkpoint: true, max_loss: 1 });
    await client.run("bash", "echo one").until("EXECUTION_DONE");
    await untilTold(server, id, "checkpoint.created");
    expect(await client.run("bash", "echo two").until("EXECUTION_DONE")).toEqual([
      "EXECUTION_RUNNING",
      "out:two\n",
      "EXECUTION_DONE",
    ]);
  });

  test("one save at a time, and a few on a server, until all are saved", async () => {
    const server = await startTestServer();
    const http = new HttpClient(server);
    const ids: string[] = [];
    for (let count = 0; count < 5; count++) ids.push((await http.create({ max_loss: 1 })).id);
    const held = Promise.withResolvers<void>();
    server.backend.faults.set("snapshot", { until: held.promise });
    await Promise.all(ids.map((id) => run(http, id)));
    // In those that are being captured this one has to wait. The others wait for their save, and are said to: by then the
    // server has looked at all of them, several times.
    const again = Promise.all(ids.map((id) => run(http, id)));
    const atRisk = async (): Promise<string[]> => {
      const counts = await Promise.all(ids.map((id) => told(server, id, "durability.at_risk")));
      return ids.filter((_, index) => (counts[index]?.length ?? 0) > 0);
    };
    await vi.waitFor(async () => expect((await atRisk()).length).toBeGreaterThanOrEqual(3), PATIENCE);
    expect(await underWay(http)).toBe(2);
    held.resolve();
    await again;
    for (const id of ids) await untilTold(server, id, "checkpoint.created");
    for (const id of await atRisk()) await untilTold(server, id, "durability.restored");
  });

  test("and is paused in the middle of it, with the later changes", async () => {
    const server = await startTestServer();
    const http = new HttpClient(server);
    const { id } = await http.create({ max_loss: 1 });
    await run(http, id, "echo one > file");
    await untilTold(server, id, "checkpoint.created");
    await run(http, id, "echo two > file");
    expect((await http.call("POST", `/v1/sandboxes/${id}/checkpoint`)).status).toBe(200);
    await http.call("POST", `/v1/sandboxes/${id}/resume`);
    const exec = { shell: "cat file" };
    const { body } = await http.call<{ stdout: string }>("POST", `/v1/sandboxes/${id}/exec`, exec);
    expect(body.stdout).toBe("two\n");
    expect(await told(server, id, "durability")).toEqual([]);
  });
});

describe("a broken promise is reported once, and so is that it is kept again,", () => {
  test("of a save that fails", async () => {
    const server = await startTestServer();
    const http = new HttpClient(server);
    const { id } = await http.create({ max_loss: 1 });
    const other = await http.create({ max_loss: 1 });
    server.backend.faults.set("snapshot", { error: new SandboxerError("no_space", "the disk is full"), times: 2 });
    await run(http, id);
    const [risk] = await untilTold(server, id, "durability.at_risk");
    expect(risk).toMatchObject({ max_loss: 1, reason: "the disk is full", last_saved_at: null });
    const { durability } = await http.get(id);
    expect(durability.at_risk).toEqual({ since: risk?.["since"], reason: "the disk is full" });
    expect(await metric(server)).toBe("1");
    const listed = async (filter: string): Promise<string[]> =>
      (await http.call<{ items: SandboxRecord[] }>("GET", `/v1/sandboxes?at_risk=${filter}`)).body.items.map(
        (each) => each.id,
      );
    expect([await listed("true"), await listed("false")]).toEqual([[id], [other.id]]);
    const [restored] = await untilTold(server, id, "durability.restored");
    expect(restored).toMatchObject({ since: risk?.["since"], last_saved_at: expect.any(String) as string });
    // Two failures, one risk.
    expect(await told(server, id, "durability")).toHaveLength(2);
    expect((await http.get(id)).durability.at_risk).toBeNull();
    expect(await metric(server)).toBe("0");
  });

  test("of a save that takes longer than the promise", async () => {
    const server = await startTestServer();
    const http = new HttpClient(server);
    const { id } = await http.create({ max_loss: "1s" });
    const held = Promise.withResolvers<void>();
    server.backend.faults.set("snapshot", { until: held.promise, times: 1 });
    const [risk] = await untilTold(server, id, "durability.at_risk").finally(held.resolve);
    expect(risk?.["reason"]).toContain("takes too long");
    await untilTold(server, id, "durability.restored");
  });

  test("of a save that takes longer than the promise, and once more when it then fails", async () => {
    const server = await startTestServer();
    const http = new HttpClient(server);
    const { id } = await http.create({ max_loss: "1s" });
    const held = Promise.withResolvers<void>();
    const error = new SandboxerError("no_space", "the disk is full");
    server.backend.faults.set("snapshot", { until: held.promise, error, times: 1 });
    const [late] = await untilTold(server, id, "durability.at_risk").finally(held.resolve);
    await expect.poll(async () => (await told(server, id, "durability.at_risk")).length).toBe(2);
    const [, failed] = await told(server, id, "durability.at_risk");
    expect(failed).toMatchObject({ since: late?.["since"], reason: "the disk is full" });
    await untilTold(server, id, "durability.restored");
  });

  test("of a store that is unreachable", async () => {
    const store = absentableStore();
    const server = await startTestServer({ wrapStore: store.wrapStore });
    const http = new HttpClient(server);
    const { id } = await http.create({ max_loss: 1 });
    store.away = true;
    await run(http, id);
    const [risk] = await untilTold(server, id, "durability.at_risk");
    expect(risk?.["reason"]).toContain("store");
    store.away = false;
    await untilTold(server, id, "durability.restored");
    expect((await http.get(id)).checkpoint).not.toBeNull();
  });

  test("of a sandbox that is paused then", async () => {
    const server = await startTestServer();
    const http = new HttpClient(server);
    const { id } = await http.create({ max_loss: 1 });
    server.backend.faults.set("snapshot", { error: new SandboxerError("no_space", "full"), times: 1 });
    await run(http, id);
    await untilTold(server, id, "durability.at_risk");
    await http.call("POST", `/v1/sandboxes/${id}/checkpoint`);
    expect(await told(server, id, "durability.restored")).toHaveLength(1);
  });

  test("of a sandbox whose promise was withdrawn", async () => {
    const server = await startTestServer();
    const http = new HttpClient(server);
    const { id } = await http.create({ max_loss: 1 });
    server.backend.faults.set("snapshot", { error: new SandboxerError("no_space", "full") });
    await run(http, id);
    await untilTold(server, id, "durability.at_risk");
    await http.call("PATCH", `/v1/sandboxes/${id}`, { max_loss: null });
    await untilTold(server, id, "durability.restored");
    expect((await http.get(id)).durability).toMatchObject({ max_loss: null, at_risk: null });
  });
});
