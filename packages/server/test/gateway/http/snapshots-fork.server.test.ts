import type { CreatedSandboxRecord } from "@sandboxer/protocol";
import { SandboxerError } from "@sandboxer/protocol";
import { describe, expect, test } from "vitest";
import { startTestServer } from "../../../../../test/kit/server/test-server.ts";
import { SandboxClient } from "./processes/support.ts";
import { count, SnapshotClient, startCounter } from "./snapshot-client.ts";

interface Fork {
  readonly snapshot_id: string;
  readonly items: CreatedSandboxRecord[];
}

describe("fork", () => {
  test("creates N independent sandboxes from one capture", async () => {
    const api = new SnapshotClient(await startTestServer());
    const box = await SandboxClient.create(api.server);
    const counter = await startCounter(box);
    await count(box, counter);
    const { status, body } = await box.call<Fork>("POST", "/fork", { count: 5, name: "twin" });
    expect(status).toBe(201);
    expect(body.items.map(({ name }) => name)).toEqual(["twin-1", "twin-2", "twin-3", "twin-4", "twin-5"]);
    const ids = [box.id, ...body.items.map(({ id }) => id)];
    expect(new Set(ids).size).toBe(6);
    expect(new Set(body.items.map(({ token }) => token)).size).toBe(5);
    const first = api.sandbox(ids[1] ?? "");
    expect([await count(first, counter), await count(first, counter)]).toEqual([2, 3]);
    for (const id of ids.slice(2)) expect(await count(api.sandbox(id), counter)).toBe(2);
    expect(await count(box, counter)).toBe(2);
    expect(await api.get(body.snapshot_id)).toMatchObject({ reason: "fork", sandbox_id: box.id });
    expect(new Set((await api.get(body.snapshot_id)).sandboxes)).toEqual(new Set(ids.slice(1)));
  });

  test("its snapshot is removed when no fork needs it any more, and kept if it was named", async () => {
    const api = new SnapshotClient(await startTestServer());
    const box = await SandboxClient.create(api.server);
    const fork = async (): Promise<Fork> => (await box.call<Fork>("POST", "/fork", { count: 2 })).body;
    const [goes, named] = [await fork(), await fork()];
    await api.call("PATCH", `/v1/snapshots/${named.snapshot_id}`, { name: "base" });
    const [deleted, paused] = goes.items.map(({ id }) => api.sandbox(id));
    expect((await deleted?.call("DELETE", ""))?.status).toBe(200);
    expect(await api.get(goes.snapshot_id)).toMatchObject({ state: "ready" });
    // With a checkpoint of its own, it does not need the snapshot.
    expect((await paused?.call("POST", "/checkpoint"))?.status).toBe(200);
    await expect
      .poll(() => api.refused("GET", `/v1/snapshots/${goes.snapshot_id}`))
      .toEqual([404, "snapshot_not_found"]);
    expect((await paused?.call("POST", "/resume"))?.status).toBe(200);

    for (const { id } of named.items) await api.sandbox(id).call("DELETE", "");
    const again = await fork();
    for (const { id } of again.items) await api.sandbox(id).call("DELETE", "");
    await expect.poll(async () => (await api.list()).items.map(({ name }) => name)).toEqual(["base"]);
    expect(api.server.problems).toEqual([]);
  });

  test("is all or nothing", async () => {
    const api = new SnapshotClient(await startTestServer());
    const box = await SandboxClient.create(api.server);
    let made = 0;
    const { faults } = api.server.backend;
    const meet = faults.meet.bind(faults);
    faults.meet = async (operation, signal) => {
      if (operation === "acquireFromSnapshot" && ++made === 6) {
        throw new SandboxerError("no_space", "The disk is full.");
      }
      return await meet(operation, signal);
    };
    const answer = await box.call("POST", "/fork", { count: 8 });
    expect([answer.status, answer.body.error.code]).toEqual([503, "no_space"]);
    expect(answer.body.error.message).toMatch(/failed and was undone.*The disk is full/);
    expect(api.server.backend.runningCount).toBe(1);
    expect((await api.list()).items).toEqual([]);
    const sandboxes = await api.call<{ items: { id: string }[] }>("GET", "/v1/sandboxes");
    expect(sandboxes.body.items.map(({ id }) => id)).toEqual([box.id]);
    expect(api.server.problems).toEqual([]);
  });

  test("stops at the server's limit, and leaves the sandbox alone", async () => {
    const api = new SnapshotClient(await startTestServer({ maxSandboxes: 3 }));
    const box = await SandboxClient.create(api.server);
    const answer = await box.call("POST", "/fork", { count: 3 });
    expect([answer.status, answer.body.error.code]).toEqual([429, "limit_reached"]);
    expect(api.server.backend.runningCount).toBe(1);
    expect((await box.exec({ shell: "echo on" })).stdout).toBe("on\n");
  });
});
