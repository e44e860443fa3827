import { type EventRecord, type ProvenCheckpoint, SandboxerError, type SnapshotInfo } from "@sandboxer/protocol";
import { readdir, rm } from "node:fs/promises";
import { join } from "node:path";
import { describe, expect, test } from "vitest";
import { type ErrorAnswer, HttpClient } from "../../gateway/http/support.ts";
import { startTestServer } from "../../../../../test/kit/server/test-server.ts";

async function withCheckpoints(count: number) {
  const server = await startTestServer();
  const http = new HttpClient(server);
  const { id } = await http.create();
  for (let saved = 0; saved < count; saved++) {
    await http.call("POST", `/v1/sandboxes/${id}/checkpoint`, { leave_running: true });
  }
  const files = await readdir(join(server.storeFolder ?? "", id, "checkpoints")).catch(() => []);
  const names = files.filter((name) => name.endsWith(".img")).toSorted();
  expect(names).toHaveLength(count);
  const prove = (body?: object) => http.call<ProvenCheckpoint & ErrorAnswer>("POST", `/v1/sandboxes/${id}/prove`, body);
  const told = async (type: string) =>
    (await http.call<{ items: EventRecord[] }>("GET", `/v1/events?type=${type}`)).body.items.map(({ data }) => data);
  return {
    server,
    http,
    id,
    names,
    prove,
    told,
  };
}

describe("a test restore of a checkpoint", () => {
  test("is of the newest one, beside the sandbox that runs, and leaves nothing", async () => {
    const { server, id, names, prove, told } = await withCheckpoints(2);
    const { status, body } = await prove();
    expect([status, body]).toEqual([
      200,
      {
        sandbox_id: id,
        checkpoint: names[1],
        proven: { at: expect.any(String) as string, engine: expect.stringMatching(/^fake /) as string },
      },
    ]);
    expect(await told("checkpoint.proven")).toMatchObject([{ checkpoint: names[1], ...body.proven }]);
    expect(server.backend.runningCount).toBe(1);
  });

  test("may be of an older checkpoint, and of a paused sandbox", async () => {
    const { server, http, id, names, prove } = await withCheckpoints(2);
    await http.call("POST", `/v1/sandboxes/${id}/checkpoint`);
    expect((await prove({ checkpoint: names[0] })).body.checkpoint).toBe(names[0]);
    expect((await http.get(id)).state).toBe("stored");
    expect(server.backend.runningCount).toBe(0);
  });

  test("that fails has the reason in the event and the response", async () => {
    const { server, names, prove, told } = await withCheckpoints(1);
    server.backend.faults.set("ping", { error: new SandboxerError("image_damaged", "no answer"), times: 1 });
    const { body } = await prove();
    expect(body.error).toMatchObject({
      code: "image_damaged",
      message: expect.stringContaining(`test restore of the checkpoint ${names[0]} failed`) as string,
    });
    expect(await told("checkpoint.unproven")).toMatchObject([{ checkpoint: names[0], reason: "no answer" }]);
    expect(server.backend.runningCount).toBe(1);
  });

  test("of a missing checkpoint is a failure if the head names it, and none if it was removed meanwhile", async () => {
    const { server, id, names, prove, told } = await withCheckpoints(2);
    const remove = (name: string | undefined) => rm(join(server.storeFolder ?? "", id, "checkpoints", name ?? ""));
    await remove(names[0]);
    expect((await prove({ checkpoint: names[0] })).body.error.code).toBe("checkpoint_not_found");
    expect(await told("checkpoint.unproven")).toEqual([]);
    await remove(names[1]);
    expect((await prove()).body.error.code).toBe("image_damaged");
    expect(await told("checkpoint.unproven")).toHaveLength(1);
  });

  test("needs a checkpoint: without one, the error names the next step", async () => {
    const { http, id, prove } = await withCheckpoints(0);
    expect((await prove()).body.error).toMatchObject({
      code: "bad_request",
      hint: expect.stringContaining("--leave-running") as string,
    });
    const { body: snapshot } = await http.call<SnapshotInfo>("POST", `/v1/sandboxes/${id}/snapshot`);
    const restored = await http.call<{ id: string }>("POST", `/v1/snapshots/${snapshot.id}/restore`, {});
    const { body } = await http.call<ErrorAnswer>("POST", `/v1/sandboxes/${restored.body.id}/prove`);
    expect(body.error.hint).toContain(`snapshot:${snapshot.id}`);
    expect((await http.call("POST", `/v1/sandboxes/${crypto.randomUUID()}/prove`)).status).toBe(404);
  });
});
