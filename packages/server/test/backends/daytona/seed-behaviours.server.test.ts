import { tmpdir } from "node:os";
import { afterEach, beforeEach, describe, expect, test } from "vitest";
import type { SnapshotPayload } from "../../../src/backends/backend.ts";
import type { DaytonaBackend } from "../../../src/backends/daytona/daytona-backend.ts";
import { errorCode, run } from "../contract/programs.ts";
import { openBackend, openServer } from "./lab.ts";
import { requestFor } from "./requests.ts";
import type { DaytonaServer } from "./server/daytona-server.ts";
import type { SeenRequest } from "./server/exchange.ts";

/** The behaviours in the test list of this backend's first design, by the same names. */
describe("Daytona", () => {
  let server: DaytonaServer;
  let backend: DaytonaBackend;
  beforeEach(async () => {
    server = await openServer();
    backend = openBackend(server);
  });
  afterEach(async () => {
    await backend.close();
    await server.close();
  });

  test("acquire_posts_to_sandbox_endpoint_with_labels", async () => {
    const request = requestFor({ specHash: "abc" }, { env: { A: "1" } });
    await backend.acquire(request);
    const [create] = server.seen("POST", /^\/sandbox$/);
    expect(bodyOf(create)).toMatchObject({
      labels: {
        "sandboxer.key": "my-convo",
        "sandboxer.spec-hash": "abc",
        "sandboxer.owner": "here",
        "sandboxer.sandbox-id": request.sandboxId,
      },
      env: { A: "1" },
      networkBlockAll: true,
    });
    // Daytona would take it for the name of a registered snapshot.
    expect(bodyOf(create)).not.toHaveProperty("snapshot");
    expect(create?.headers["x-daytona-organization-id"]).toBe(server.organizationId);
  });

  test("acquire_rejects_host_mounts", async () => {
    const spec = { inputs: { mounts: "/home:/home:ro" } };
    expect(await errorCode(backend.acquire(requestFor({}, spec)))).toBe("not_supported");
    expect(server.requests).toEqual([]);
  });

  test("try_resume_finds_running_sandbox_without_starting", async () => {
    const request = requestFor();
    await backend.acquire(request);
    const vendorId = server.plane.sandboxes[0]?.id;
    const other = openBackend(server);
    const resumed = await other.tryResume(requestFor());
    expect(resumed).toMatchObject({ vendorId });
    expect(server.seen("POST", /\/start$/)).toEqual([]);
    await other.close();
  });

  test("try_resume_starts_stopped_sandbox", async () => {
    const handle = await backend.acquire(requestFor());
    await handle.files.write("/workspace/marker", Buffer.from("kept"));
    await handle.stop();
    const resumed = await backend.tryResume(requestFor());
    expect(server.seen("POST", /\/start$/)).toHaveLength(1);
    expect(await text(resumed?.files.read("/workspace/marker"))).toBe("kept");
  });

  test("try_resume_returns_none_when_no_match", async () => {
    await backend.acquire(requestFor({ key: "another" }));
    await backend.acquire(requestFor({ owner: "someone else" }));
    expect(await backend.tryResume(requestFor())).toBeUndefined();
    expect(server.seen("DELETE", /./)).toEqual([]);
  });

  test("try_resume_filters_by_label_as_single_json_query_param", async () => {
    await backend.tryResume(requestFor());
    const [list] = server.seen("GET", /^\/sandbox$/);
    expect(list?.query.getAll("labels")).toHaveLength(1);
    const labels: unknown = JSON.parse(list?.query.get("labels") ?? "");
    expect(labels).toEqual({ "sandboxer.key": "my-convo", "sandboxer.owner": "here" });
  });

  test("stop_calls_stop_endpoint_not_delete", async () => {
    const handle = await backend.acquire(requestFor());
    await handle.stop();
    expect(server.seen("POST", /\/stop$/)).toHaveLength(1);
    expect(server.seen("DELETE", /./)).toEqual([]);
    expect(server.plane.sandboxes[0]?.record.state).toBe("stopped");
  });

  test("snapshot_returns_daytona_snapshot_payload_with_manifest", async () => {
    const handle = await backend.acquire(requestFor({}, { image: "docker:debian:13" }));
    const payload = await handle.snapshot(tmpdir(), { mode: "filesystem", leaveRunning: true });
    const [snapshot_name] = server.plane.snapshots.keys();
    const { apiUrl: api_url, organizationId: organization_id } = server;
    const requirements = { format: 1, snapshot_name, api_url, organization_id, base_image: "debian:13" };
    expect(payload).toEqual({ kind: "daytona-snapshot", members: [], requirements });
  });

  test("acquire_from_snapshot_passes_snapshot_name_in_create_body", async () => {
    const handle = await backend.acquire(requestFor());
    await handle.files.write("/workspace/marker", Buffer.from("saved"));
    const payload = await handle.snapshot(tmpdir(), { mode: "filesystem", leaveRunning: true });
    const { snapshot_name: snapshotName, api_url: apiUrl, organization_id: organizationId } = payload.requirements;
    const before: SnapshotPayload = { ...payload, requirements: { format: 1, snapshotName, apiUrl, organizationId } };
    for (const [index, stored] of [payload, before].entries()) {
      const restored = await backend.acquireFromSnapshot(requestFor({ key: `copy ${index}` }), stored);
      const create = server.seen("POST", /^\/sandbox$/)[1 + index];
      expect(bodyOf(create)).toMatchObject({ snapshot: snapshotName });
      expect(await text(restored.files.read("/workspace/marker"))).toBe("saved");
    }
  });

  test("acquire_from_snapshot_rejects_wrong_kind", async () => {
    const payload: SnapshotPayload = { kind: "docker-image-tar", members: [], requirements: {} };
    expect(await errorCode(backend.acquireFromSnapshot(requestFor(), payload))).toBe("image_incompatible");
    const elsewhere: SnapshotPayload = {
      kind: "daytona-snapshot",
      members: [],
      requirements: { format: 1, snapshotName: "x", apiUrl: "https://elsewhere.test/api" },
    };
    expect(await errorCode(backend.acquireFromSnapshot(requestFor(), elsewhere))).toBe("image_incompatible");
    expect(server.requests).toEqual([]);
  });

  test("exec_uses_toolbox_url_not_api_url", async () => {
    const handle = await backend.acquire(requestFor());
    const { stdout, exit } = await run(handle, ["echo", "from inside"]);
    expect(stdout).toBe("from inside\n");
    expect(exit.code).toBe(0);
    const vendorId = server.plane.sandboxes[0]?.id ?? "";
    const executed = server.seen("POST", /\/process\/execute$/, "toolbox");
    expect(executed.at(-1)?.path).toBe(`/toolbox/${vendorId}/process/execute`);
    expect(server.seen("POST", /process/, "api")).toEqual([]);
  });
});

function bodyOf(request: SeenRequest | undefined): unknown {
  return JSON.parse(request?.body.toString("utf8") ?? "null");
}

async function text(content: AsyncIterable<Uint8Array> | undefined): Promise<string> {
  return Buffer.concat(await Array.fromAsync(content ?? [])).toString("utf8");
}
