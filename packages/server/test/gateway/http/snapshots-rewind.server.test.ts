import type { SandboxRecord } from "@sandboxer/protocol";
import { SandboxerError } from "@sandboxer/protocol";
import { describe, expect, test } from "vitest";
import { startTestServer } from "../../../../../test/kit/server/test-server.ts";
import { SandboxClient } from "./processes/support.ts";
import { count, SnapshotClient, startCounter } from "./snapshot-client.ts";
import { HttpClient } from "./support.ts";

async function boxAtTwo(body: object = {}) {
  const api = new SnapshotClient(await startTestServer());
  const box = await SandboxClient.create(api.server, body);
  const counter = await startCounter(box);
  await count(box, counter);
  await box.exec({ shell: "echo before > file" });
  const snapshot = await api.take(box.id, { name: "one" });
  await count(box, counter);
  await box.exec({ shell: "echo after > file" });
  return { api, box, counter, snapshot };
}

describe("rewind", () => {
  test("restores files, memory and processes, in place", async () => {
    const { api, box, counter, snapshot } = await boxAtTwo();
    const before = await api.http.get(box.id);
    const { status, body } = await box.call<SandboxRecord>("POST", "/rewind", { snapshot_id: "one" });
    expect(status).toBe(200);
    expect(body).toMatchObject({ id: box.id, state: "running", epoch: before.epoch });
    expect(body.origin.snapshot_id).toBe(snapshot.id);
    expect(await count(box, counter)).toBe(2);
    expect((await box.exec({ shell: "cat file" })).stdout).toBe("before\n");
    expect(api.server.backend.runningCount).toBe(1);
    expect((await api.get("one")).sandboxes).toEqual([box.id]);
    expect((await api.take(box.id)).parent).toBe(snapshot.id);
  });

  test("survives its server: nothing of the earlier state comes back", async () => {
    const { api, box, counter, snapshot } = await boxAtTwo();
    await box.call("POST", "/rewind", { snapshot_id: snapshot.id });
    const head = await api.server.durable.ownership.read(box.id);
    expect(head).toMatchObject({ checkpoint: { kind: "fake-state" }, lineage: { snapshot: snapshot.id } });
    // As if the server had been killed: its lease and its sandboxes have ended.
    const other = await startTestServer({ store: api.server.storeFolder ?? null });
    await other.instances.markDead(api.server.instances.instanceId ?? "");
    expect((await new HttpClient(other).call("POST", `/v1/sandboxes/${box.id}/resume`)).status).toBe(200);
    const woken = new SandboxClient(other, box.id);
    expect(await count(woken, counter)).toBe(2);
    expect((await woken.exec({ shell: "cat file" })).stdout).toBe("before\n");
  });

  test("the attached client gets a message, and continues with the same socket", async () => {
    const api = new SnapshotClient(await startTestServer());
    const { client, id } = await api.server.create({ enable_checkpoint: true });
    await client.run("bash", "echo then > file").until("EXECUTION_DONE");
    const snapshot = await api.take(id);
    await client.run("bash", "echo now > file; read x").until("EXECUTION_RUNNING");
    await api.call("POST", `/v1/sandboxes/${id}/rewind`, { snapshot_id: snapshot.id });
    expect(await client.until("RUNNING")).toEqual(["RESTORING", "RUNNING"]);
    expect(await client.run("bash", "cat file").until("EXECUTION_DONE")).toEqual([
      "EXECUTION_RUNNING",
      "out:then\n",
      "EXECUTION_DONE",
    ]);
  });

  test.each([["cannot be loaded", "acquireFromSnapshot", 503, "no_space"]] as const)(
    "to a state that %s changes nothing",
    async (_, operation, status, code) => {
      const { api, box, counter } = await boxAtTwo();
      const error = new SandboxerError("no_space", "The disk is full.");
      api.server.backend.faults.set(operation, { error, times: 1 });
      const answer = await box.call("POST", "/rewind", { snapshot_id: "one" });
      expect([answer.status, answer.body.error.code]).toEqual([status, code]);
      expect(await count(box, counter)).toBe(3);
      expect((await box.exec({ shell: "cat file" })).stdout).toBe("after\n");
      expect(api.server.backend.runningCount).toBe(1);
      expect((await api.http.get(box.id)).checkpoint).toBeNull();
    },
  );

  test("that cannot be published changes nothing", async () => {
    const { api, box, counter } = await boxAtTwo();
    const { ownership } = api.server.durable ?? {};
    if (ownership === undefined) throw new Error("There is no store.");
    ownership.replaceState = async () => {
      throw new SandboxerError("store_unavailable", "The store is away.");
    };
    const answer = await box.call("POST", "/rewind", { snapshot_id: "one" });
    expect([answer.status, answer.body.error.code]).toEqual([503, "store_unavailable"]);
    expect(await count(box, counter)).toBe(3);
    expect(api.server.backend.runningCount).toBe(1);
  });

  test("to a snapshot of a sandbox with another image is refused before anything happens", async () => {
    const { api, box, counter } = await boxAtTwo();
    const other = await SandboxClient.create(api.server, { image: "host" });
    const foreign = await api.take(other.id);
    const answer = await box.call("POST", "/rewind", { snapshot_id: foreign.id });
    expect([answer.status, answer.body.error.code]).toEqual([422, "image_incompatible"]);
    expect(await count(box, counter)).toBe(3);
    expect(await api.refused("POST", `/v1/sandboxes/${box.id}/rewind`, { snapshot_id: "unknown" })).toEqual([
      404,
      "snapshot_not_found",
    ]);
  });

  test("of a sandbox without a store of its own needs no checkpoint", async () => {
    const { api, box, counter } = await boxAtTwo({
      enable_checkpoint: false,
      enable_idle_timeout_auto_checkpoint: false,
      enable_sandbox_handoff: false,
    });
    expect((await box.call("POST", "/rewind", { snapshot_id: "one" })).status).toBe(200);
    expect(await count(box, counter)).toBe(2);
    expect(await api.server.durable.ownership.read(box.id)).toMatchObject({ checkpoint: null });
  });
});
