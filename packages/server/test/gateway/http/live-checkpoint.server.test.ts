import type { EventRecord, OperationRecordBody, SandboxRecord } from "@sandboxer/protocol";
import { SandboxerError } from "@sandboxer/protocol";
import { describe, expect, test, vi } from "vitest";
import { heldWrite } from "../../manager/support/held-call.ts";
import { startTestServer, type TestServer } from "../../../../../test/kit/server/test-server.ts";
import { type ErrorAnswer, HttpClient } from "./support.ts";

const LIVE = { leave_running: true };
/** Machines may be busy. */
const PATIENCE = { timeout: 60_000 };

async function shell(http: HttpClient, id: string, line: string): Promise<string> {
  const { body } = await http.call<{ stdout: string }>("POST", `/v1/sandboxes/${id}/exec`, { shell: line });
  return body.stdout.trim();
}

async function created(server: TestServer, id: string): Promise<EventRecord["data"][]> {
  const path = `/v1/events?sandbox_id=${id}&type=checkpoint&limit=1000`;
  const { body } = await new HttpClient(server).call<{ items: EventRecord[] }>("GET", path);
  return body.items.map(({ data }) => data);
}

describe("a checkpoint that leaves the sandbox running", () => {
  test("is in the head while this server keeps the sandbox, and processes keep running", async () => {
    const server = await startTestServer();
    const http = new HttpClient(server);
    const { id } = await http.create();
    const detached = { shell: "read line", wait: false };
    const { body: process } = await http.call<{ id: string }>("POST", `/v1/sandboxes/${id}/exec`, detached);
    await shell(http, id, "echo one > file");
    const saved = await http.call<SandboxRecord>("POST", `/v1/sandboxes/${id}/checkpoint`, LIVE);
    expect(saved).toMatchObject({ status: 200, body: { state: "running", epoch: 1, owner: { here: true } } });
    const head = await server.durable.ownership.read(id);
    expect(head).toMatchObject({ state: "live", owner: server.instances.instanceId });
    expect(saved.body.checkpoint?.name).toBe(head?.checkpoint?.name);
    expect(saved.body.durability.last_saved_at).toBe(head?.checkpoint?.created_at);
    expect(await server.durable.checkpoints.latestName(id)).toBe(head?.checkpoint?.name);
    const still = await http.call<{ running: boolean }>("GET", `/v1/sandboxes/${id}/processes/${process.id}`);
    expect(still.body).toMatchObject({ state: "running" });
    expect(await shell(http, id, "cat file")).toBe("one");
  });

  test("reports in its operation and its event how long the sandbox was stopped", async () => {
    const server = await startTestServer();
    const http = new HttpClient(server);
    const { id } = await http.create();
    await http.call("POST", `/v1/sandboxes/${id}/checkpoint`, LIVE);
    const path = `/v1/operations?sandbox_id=${id}`;
    const { body } = await http.call<{ items: OperationRecordBody[] }>("GET", path);
    const [operation] = body.items;
    expect(operation).toMatchObject({ kind: "checkpoint", state: "done" });
    expect(operation?.paused_ms).toBeGreaterThan(0);
    expect(operation?.paused_ms).toBeLessThanOrEqual(operation?.elapsed_ms ?? 0);
    expect(await created(server, id)).toMatchObject([
      { left_running: true, reason: "request", parent: null, paused_ms: operation?.paused_ms },
    ]);
  });

  test("is the parent of the next one, however that is taken", async () => {
    const server = await startTestServer();
    const http = new HttpClient(server);
    const { id } = await http.create();
    for (const body of [LIVE, LIVE, {}]) await http.call("POST", `/v1/sandboxes/${id}/checkpoint`, body);
    const events = await created(server, id);
    expect(events.map(({ parent }) => parent)).toEqual([null, events[0]?.["name"], events[1]?.["name"]]);
  });

  test("is refused where nothing can be saved", async () => {
    const server = await startTestServer();
    const http = new HttpClient(server);
    const { id } = await http.create({ enable_checkpoint: false });
    const refused = await http.call<ErrorAnswer>("POST", `/v1/sandboxes/${id}/checkpoint`, LIVE);
    expect(refused.body.error).toMatchObject({ code: "checkpoint_disabled" });
    expect((await http.get(id)).state).toBe("running");
  });

  test("that fails leaves the sandbox and its last checkpoint unchanged", async () => {
    const server = await startTestServer();
    const http = new HttpClient(server);
    const { id } = await http.create();
    await http.call("POST", `/v1/sandboxes/${id}/checkpoint`, LIVE);
    const { checkpoint } = await http.get(id);
    server.backend.faults.set("snapshot", { error: new SandboxerError("no_space", "full"), times: 1 });
    expect((await http.call<ErrorAnswer>("POST", `/v1/sandboxes/${id}/checkpoint`, LIVE)).body.error.code).toBe(
      "no_space",
    );
    expect(await http.get(id)).toMatchObject({ state: "running", checkpoint });
    expect(await shell(http, id, "echo on")).toBe("on");
  });
});

describe("while its image is being written to the store", () => {
  test("nothing is acknowledged, and the sandbox accepts work", async () => {
    const store = heldWrite(/\/checkpoint_\d+\.img$/);
    const server = await startTestServer({ wrapStore: store.wrapStore });
    const http = new HttpClient(server);
    const { id } = await http.create();
    const call = http.call<SandboxRecord>("POST", `/v1/sandboxes/${id}/checkpoint`, LIVE);
    await store.reached;
    expect(await shell(http, id, "echo on")).toBe("on");
    expect(await http.get(id)).toMatchObject({ state: "running", checkpoint: null });
    expect(await created(server, id)).toEqual([]);
    store.release();
    expect((await call).body.checkpoint).not.toBeNull();
  });

  test("nothing is acknowledged before the head names it either", async () => {
    const server = await startTestServer();
    const http = new HttpClient(server);
    const { id } = await http.create();
    const ownership = server.durable.ownership;
    if (ownership === undefined) throw new Error("There is no store.");
    const [reached, held] = [Promise.withResolvers<void>(), Promise.withResolvers<void>()];
    const publish = ownership.publish.bind(ownership);
    vi.spyOn(ownership, "publish").mockImplementation(async (...given) => {
      reached.resolve();
      await held.promise;
      return publish(...given);
    });
    let answered = false;
    const call = http.call("POST", `/v1/sandboxes/${id}/checkpoint`, LIVE).then(() => (answered = true));
    await reached.promise;
    await shell(http, id, "echo on");
    expect(answered).toBe(false);
    expect(await created(server, id)).toEqual([]);
    held.resolve();
    await call;
    expect(await created(server, id)).toHaveLength(1);
  });

  test.each([
    ["put down", "POST", "checkpoint", "stored"],
    ["destroyed", "DELETE", "", "destroyed"],
  ])("it is cancelled if the sandbox is %s", async (_what, method, verb, state) => {
    const store = heldWrite(/\/checkpoint_\d+\.img$/);
    const server = await startTestServer({ wrapStore: store.wrapStore });
    const http = new HttpClient(server);
    const { id } = await http.create();
    await shell(http, id, "echo one > file");
    const call = http.call<ErrorAnswer>("POST", `/v1/sandboxes/${id}/checkpoint`, LIVE);
    await store.reached;
    await shell(http, id, "echo two > file");
    const ended = http.call(method, `/v1/sandboxes/${id}${verb === "" ? "" : `/${verb}`}`);
    store.release();
    expect((await call).body.error).toMatchObject({
      code: "wrong_state",
      message: expect.stringContaining("was cancelled") as string,
    });
    expect((await ended).status).toBeLessThan(300);
    expect((await http.get(id)).state).toBe(state);
    if (state === "destroyed") return;
    await http.call("POST", `/v1/sandboxes/${id}/resume`);
    expect(await shell(http, id, "cat file")).toBe("two");
  });

  test("it does not replace the state that the sandbox was rewound to", async () => {
    const store = heldWrite(/\/checkpoint_\d+\.img$/);
    const server = await startTestServer({ wrapStore: store.wrapStore });
    const http = new HttpClient(server);
    const { id } = await http.create();
    await shell(http, id, "echo one > file");
    const { body: snapshot } = await http.call<{ id: string }>("POST", `/v1/sandboxes/${id}/snapshot`);
    await shell(http, id, "echo two > file");
    const call = http.call<ErrorAnswer>("POST", `/v1/sandboxes/${id}/checkpoint`, LIVE);
    await store.reached;
    const rewound = http.call("POST", `/v1/sandboxes/${id}/rewind`, { snapshot_id: snapshot.id });
    store.release();
    expect((await rewound).status).toBe(200);
    expect((await call).status).toBe(409);
    server.backend.crash(id);
    await vi.waitFor(async () => expect((await http.get(id)).state).toBe("stored"), PATIENCE);
    await http.call("POST", `/v1/sandboxes/${id}/resume`);
    expect(await shell(http, id, "cat file")).toBe("one");
  });

  test("a live checkpoint of a dead sandbox is not published over the state that it resumed from", async () => {
    const store = heldWrite(/\/checkpoint_\d+\.img$/, 2);
    const server = await startTestServer({ wrapStore: store.wrapStore });
    const http = new HttpClient(server);
    const { id } = await http.create();
    await http.call("POST", `/v1/sandboxes/${id}/checkpoint`, LIVE);
    const { checkpoint } = await http.get(id);
    const call = http.call<ErrorAnswer>("POST", `/v1/sandboxes/${id}/checkpoint`, LIVE);
    await store.reached;
    server.backend.crash(id);
    await vi.waitFor(async () => expect((await http.get(id)).state).toBe("stored"), PATIENCE);
    await http.call("POST", `/v1/sandboxes/${id}/resume`);
    store.release();
    expect((await call).status).toBe(409);
    expect(await http.get(id)).toMatchObject({ state: "running", checkpoint });
  });
});
