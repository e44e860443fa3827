import { type EventRecord, SandboxerError, type SandboxRecord, type SnapshotInfo } from "@sandboxer/protocol";
import { describe, expect, test, vi } from "vitest";
import type { AcquireRequest, SandboxBackend } from "../../../src/backends/backend.ts";
import type { FakeBackend } from "../../../src/backends/fake/index.ts";
import { type ErrorAnswer, HttpClient } from "../../gateway/http/support.ts";
import {
  startTestServer,
  type TestServer,
  type TestServerOptions,
} from "../../../../../test/kit/server/test-server.ts";

/** Machines may be busy. */
const PATIENCE = { timeout: 60_000 };

async function told(http: HttpClient, type: string): Promise<EventRecord["data"][]> {
  const { body } = await http.call<{ items: EventRecord[] }>("GET", `/v1/events?type=${type}&limit=1000`);
  return body.items.map(({ data }) => data);
}

async function withSnapshot(
  options: TestServerOptions = {},
  sandbox: object = {},
  snapshot: object = {},
): Promise<{ server: TestServer; http: HttpClient; id: string; sandboxId: string }> {
  const server = await startTestServer(options);
  const http = new HttpClient(server);
  const { id: sandboxId } = await http.create(sandbox);
  const { body } = await http.call<SnapshotInfo>("POST", `/v1/sandboxes/${sandboxId}/snapshot`, snapshot);
  return { server, http, id: body.id, sandboxId };
}

/** Tells of each restore. */
function watched(onRestore: (request: AcquireRequest) => void): (backend: FakeBackend) => SandboxBackend {
  return (backend) =>
    new Proxy(backend, {
      get: (target, name) => {
        const value: unknown = Reflect.get(target, name, target);
        if (name === "acquireFromSnapshot")
          return (...given: Parameters<SandboxBackend["acquireFromSnapshot"]>) => {
            onRestore(given[0]);
            return target.acquireFromSnapshot(...given);
          };
        return typeof value === "function" ? (value.bind(target) as unknown) : value;
      },
    });
}

const prove = (http: HttpClient, id: string) =>
  http.call<SnapshotInfo & ErrorAnswer>("POST", `/v1/snapshots/${id}/prove`);
const recordOf = async (http: HttpClient, id: string): Promise<SnapshotInfo> =>
  (await http.call<SnapshotInfo>("GET", `/v1/snapshots/${id}`)).body;

describe("a test restore", () => {
  test.each(["full", "filesystem", "workspace"])(
    "proves a snapshot of the mode %s, and says so in its record",
    async (mode) => {
      const { server, http, id } = await withSnapshot({}, {}, { mode });
      expect(await recordOf(http, id)).toMatchObject({ proven: null, unproven: null });
      const { status, body } = await prove(http, id);
      expect([status, body.proven?.engine]).toEqual([200, expect.stringMatching(/^fake /)]);
      expect(await recordOf(http, id)).toMatchObject({ proven: body.proven, unproven: null });
      expect(await told(http, "snapshot.proven")).toMatchObject([{ snapshot_id: id, ...body.proven }]);
      expect(server.backend.runningCount).toBe(1);
    },
  );

  test("runs in isolation, in no list and under nobody's id", async () => {
    const { server, http, id, sandboxId } = await withSnapshot();
    const held = Promise.withResolvers<void>();
    server.backend.faults.set("ping", { until: held.promise, times: 1 });
    const proof = prove(http, id);
    await vi.waitFor(() => expect(server.backend.runningCount).toBe(2), PATIENCE);
    const { body } = await http.call<{ items: SandboxRecord[] }>("GET", "/v1/sandboxes");
    expect(body.items.map((each) => each.id)).toEqual([sandboxId]);
    expect(server.manager.states()).toEqual({ running: 1 });
    expect((await http.call<{ sandboxes: number }>("GET", "/v1/server")).body.sandboxes).toBe(1);
    held.resolve();
    expect((await proof).status).toBe(200);
    expect((await told(http, "sandbox.state")).filter(({ to }) => to === "creating")).toHaveLength(1);
  });

  test.each(["filesystem", "full"])(
    "of a %s snapshot has no network, no secrets and none of the setup of the captured one, and uses no warm sandbox",
    async (mode) => {
      const seen: AcquireRequest[] = [];
      const { http, id } = await withSnapshot(
        { wrapBackend: watched((request) => seen.push(request)) },
        { network: "open", env: { A: "1" } },
        { mode },
      );
      expect((await prove(http, id)).status).toBe(200);
      expect(seen).toMatchObject([{ skipWarmPool: true }]);
      expect(seen.map(({ spec }) => spec)).toEqual([{ env: { A: "1" }, resources: {}, network: "none" }]);
    },
  );

  test("that fails has the reason in the record, the event and the response, and leaves nothing", async () => {
    const { server, http, id } = await withSnapshot();
    expect((await prove(http, id)).status).toBe(200);
    server.backend.faults.set("ping", { error: new SandboxerError("image_damaged", "no answer"), times: 1 });
    const { body } = await prove(http, id);
    expect(body.error).toMatchObject({
      code: "image_damaged",
      message: expect.stringContaining("no answer") as string,
    });
    expect(body.error.hint).toContain("Take another snapshot");
    const record = await recordOf(http, id);
    expect(record).toMatchObject({ proven: null, unproven: { reason: "no answer" } });
    expect(await told(http, "snapshot.unproven")).toMatchObject([{ snapshot_id: id, reason: "no answer" }]);
    expect(server.backend.runningCount).toBe(1);
    expect((await prove(http, id)).body).toMatchObject({
      proven: { engine: expect.any(String) as string },
      unproven: null,
    });
  });

  test("finds damage that a check of the bytes cannot find", async () => {
    const server = await startTestServer();
    const http = new HttpClient(server);
    const { id: sandboxId } = await http.create();
    // Damaged before it was packed: every digest holds.
    server.backend.faults.set("snapshot", { damage: "flipped_byte", times: 1 });
    const { body } = await http.call<SnapshotInfo>("POST", `/v1/sandboxes/${sandboxId}/snapshot`);
    const verified = await http.call<SnapshotInfo>("GET", `/v1/snapshots/${body.id}?verify=true`);
    expect(verified.body.state).toBe("ready");
    expect((await prove(http, body.id)).body.error.code).toBe("image_damaged");
    expect((await recordOf(http, body.id)).unproven).not.toBeNull();
  });

  test("runs automatically if configured, for requested snapshots", async () => {
    const { http, id, sandboxId } = await withSnapshot({ proveSnapshots: true });
    await vi.waitFor(async () => expect((await recordOf(http, id)).proven).not.toBeNull(), PATIENCE);
    const forked = await http.call<{ snapshot_id: string }>("POST", `/v1/sandboxes/${sandboxId}/fork`, {});
    const { body: last } = await http.call<SnapshotInfo>("POST", `/v1/sandboxes/${sandboxId}/snapshot`);
    await vi.waitFor(async () => expect((await recordOf(http, last.id)).proven).not.toBeNull(), PATIENCE);
    // It was restored anyway, and had been first.
    expect((await recordOf(http, forked.body.snapshot_id)).proven).toBeNull();
  });
});

describe("nothing is recorded about a snapshot", () => {
  test.each(["timeout", "internal"] as const)(
    "when its test restore fails as on an overloaded machine: %s",
    async (code) => {
      const { server, http, id } = await withSnapshot();
      server.backend.faults.set("ping", { error: new SandboxerError(code, "no answer"), times: 1 });
      expect((await prove(http, id)).body.error.code).toBe(code);
      expect(await recordOf(http, id)).toMatchObject({ proven: null, unproven: null });
      expect(await told(http, "snapshot.unproven")).toEqual([]);
      expect(server.backend.runningCount).toBe(1);
    },
  );

  const untouched = { proven: null, unproven: null };

  test("when there is no place for another sandbox", async () => {
    const { http, id } = await withSnapshot({ maxSandboxes: 1 });
    expect((await prove(http, id)).body.error.code).toBe("limit_reached");
    expect(await recordOf(http, id)).toMatchObject(untouched);
  });

  test("when its test restore yields to a user's sandbox", async () => {
    const { server, http, id } = await withSnapshot({ maxSandboxes: 2 });
    server.backend.faults.set("ping", { until: new Promise(() => {}), times: 1 });
    const proof = prove(http, id);
    await vi.waitFor(() => expect(server.backend.runningCount).toBe(2), PATIENCE);
    await http.create();
    expect((await proof).body.error).toMatchObject({
      code: "limit_reached",
      message: expect.stringContaining("was cancelled") as string,
    });
    await vi.waitFor(() => expect(server.backend.runningCount).toBe(2), PATIENCE);
    expect(await recordOf(http, id)).toMatchObject(untouched);
  });

  test("when it yields, and the sandbox that needs its place starts after its end", async () => {
    const { server, http, id } = await withSnapshot({ maxSandboxes: 2 });
    server.backend.faults.set("ping", { until: new Promise(() => {}), times: 1 });
    const ending = Promise.withResolvers<void>();
    const proof = prove(http, id);
    await vi.waitFor(() => expect(server.backend.runningCount).toBe(2), PATIENCE);
    server.backend.faults.set("destroy", { until: ending.promise, times: 1 });
    let mostRunning = 0;
    server.manager.events.listen(({ type }) => {
      if (type === "sandbox.state") mostRunning = Math.max(mostRunning, server.backend.runningCount);
    });
    const created = http.create();
    await vi.waitFor(() => expect(server.manager.states()).toMatchObject({ creating: 1 }), PATIENCE);
    ending.resolve();
    await created;
    expect((await proof).body.error.code).toBe("limit_reached");
    expect(mostRunning).toBe(2);
    expect(server.backend.runningCount).toBe(2);
  });

  test("when the server ends, and its test restores with it", async () => {
    const { server, http, id } = await withSnapshot();
    server.backend.faults.set("ping", { until: new Promise(() => {}), times: 1 });
    const proof = server.manager.snapshots.prove(id);
    const outcome = proof.catch((error: unknown) => (error as SandboxerError).code);
    await vi.waitFor(() => expect(server.backend.runningCount).toBe(2), PATIENCE);
    await server.manager.drain();
    expect(await outcome).toBe("draining");
    expect(server.backend.runningCount).toBe(0);
    expect(await recordOf(http, id)).toMatchObject(untouched);
  });

  test("when its backend would keep the test restore after the end of the server", async () => {
    let outlivesServer = false;
    const wrapBackend = (backend: FakeBackend): SandboxBackend =>
      new Proxy(backend, {
        get: (target, name) => {
          const value: unknown = Reflect.get(target, name, target);
          if (name === "capabilities") return { ...target.capabilities, outlivesServer };
          return typeof value === "function" ? (value.bind(target) as unknown) : value;
        },
      });
    const { server, http, id } = await withSnapshot({ wrapBackend });
    outlivesServer = true;
    expect((await prove(http, id)).body.error.code).toBe("not_supported");
    outlivesServer = false;
    expect(await recordOf(http, id)).toMatchObject(untouched);
    expect(server.backend.runningCount).toBe(1);
  });

  test("when there is none", async () => {
    const http = new HttpClient(await startTestServer());
    expect((await prove(http, "nothing")).body.error.code).toBe("snapshot_not_found");
  });
});
