import { execFileSync } from "node:child_process";
import { mkdir, stat, writeFile } from "node:fs/promises";
import { join } from "node:path";
import type { Carried, CreatedSandboxRecord } from "@sandboxer/protocol";
import { SandboxerError } from "@sandboxer/protocol";
import { expect, test } from "vitest";
import type { RawFiles, SnapshotPayload } from "../../../src/backends/backend.ts";
import { FakeBackend, type FakeBackendOptions } from "../../../src/backends/fake/index.ts";
import {
  startTestServer,
  type TestServer,
  type TestServerOptions,
} from "../../../../../test/kit/server/test-server.ts";
import { describeTree, makeOddTree } from "./portable-tree.ts";
import { SandboxClient } from "./processes/support.ts";
import { SnapshotClient } from "./snapshot-client.ts";

type Restored = CreatedSandboxRecord & { readonly carried: Carried };

interface Pair {
  readonly api: SnapshotClient<TestServer>;
  readonly other: FakeBackend;
}

/** A server with a second backend that loads nothing but what the manager unpacks into it. */
async function startPair(other: FakeBackendOptions = {}, server: TestServerOptions = {}): Promise<Pair> {
  const backend = new FakeBackend({ name: "other", loads: [], ...other });
  return { api: new SnapshotClient(await startTestServer({ moreBackends: [backend], ...server })), other: backend };
}

const filesOf = async ({ server }: SnapshotClient<TestServer>, id: string) => (await server.live(id)).handle.files;

const explain = async (api: SnapshotClient<TestServer>, id: string, backend = ""): Promise<Carried> =>
  (await api.call<Carried>("GET", `/v1/snapshots/${id}/explain${backend && `?backend=${backend}`}`)).body;

test("a workspace moves to another backend with all its unusual files", async () => {
  const { api, other } = await startPair();
  const env = { A: "1" };
  const box = await SandboxClient.create(api.server, { env, labels: { of: "test" }, resources: { processes: 50 } });
  const files = await filesOf(api, box.id);
  await makeOddTree(files);
  await files.write("/tmp/outside", Buffer.from("x"));
  const before = await describeTree(files);
  const snapshot = await api.take(box.id, { mode: "workspace", name: "portable" });
  expect(snapshot).toMatchObject({ mode: "workspace", kind: "workspace-tar", backend: "fake" });
  const restored = (await api.restore("portable", { backend: "other" })) as Restored;
  expect(restored).toMatchObject({
    backend: "other",
    labels: { of: "test" },
    resources: { processes: 50 },
    origin: { sandbox_id: box.id, snapshot_id: snapshot.id },
    carried: { memory: "lost", processes: "lost", env: "kept", limits: "kept", loadable: true, backend: "other" },
  });
  const there = await filesOf(api, restored.id);
  expect(await describeTree(there)).toEqual(before);
  await expect(there.stat("/tmp/outside")).rejects.toMatchObject({ code: "file_not_found" });
  expect((await api.sandbox(restored.id).exec({ shell: "echo $A" })).stdout).toBe("1\n");
  expect([other.runningCount, api.server.backend.runningCount]).toEqual([1, 1]);
  const paths = Object.entries(before).filter(([, entry]) => !entry.startsWith("folder"));
  expect(restored.carried.files).toMatchObject({ scope: "workspace", count: paths.length });
});

test("it can be loaded by the backend that it was captured on, and rewound to", async () => {
  const { api } = await startPair();
  const box = await SandboxClient.create(api.server);
  const files = await filesOf(api, box.id);
  await files.write("/workspace/a", Buffer.from("1"));
  const snapshot = await api.take(box.id, { mode: "workspace" });
  await files.write("/workspace/a", Buffer.from("22"));
  const restored = await api.restore(snapshot.id);
  expect((await (await filesOf(api, restored.id)).stat("/workspace/a")).sizeBytes).toBe(1);
  expect((await box.call("POST", "/rewind", { snapshot_id: snapshot.id })).status).toBe(200);
  expect((await (await filesOf(api, box.id)).stat("/workspace/a")).sizeBytes).toBe(1);
});

test("a durable sandbox that was created from a workspace is restored from it by the next server", async () => {
  const { api } = await startPair();
  const box = await SandboxClient.create(api.server);
  await (await filesOf(api, box.id)).write("/workspace/a", Buffer.from("1"));
  const snapshot = await api.take(box.id, { mode: "workspace" });
  const { id } = await api.restore(snapshot.id);
  await api.server.drain();
  const next = new SnapshotClient(await startTestServer({ store: api.server.storeFolder ?? "" }));
  expect((await next.call("POST", `/v1/sandboxes/${id}/resume`, {})).status).toBe(200);
  expect((await next.sandbox(id).exec({ shell: "cat /workspace/a" })).stdout).toBe("1");
});

test("a kind that the backend cannot load is refused before anything is called, with the backends that can", async () => {
  const { api, other } = await startPair();
  const box = await SandboxClient.create(api.server);
  const { id } = await api.take(box.id);
  let calls = 0;
  other.faults.meet = async () => {
    calls += 1;
    return {};
  };
  const refused = await api.call("POST", `/v1/snapshots/${id}/restore`, { backend: "other" });
  expect([refused.status, refused.body.error.code]).toEqual([422, "image_incompatible"]);
  expect(refused.body.error.details).toEqual({ kind: "fake-state", backend: "other", backends: ["fake"] });
  const named = await api.call("POST", "/v1/sandboxes", { backend: "other", filesystem_snapshot_name: id });
  expect([named.status, named.body.error.code]).toEqual([422, "image_incompatible"]);
  expect(await explain(api, id, "other")).toMatchObject({
    loadable: false,
    why_not: expect.stringContaining("fake-state") as string,
    backends: ["fake"],
    memory: "lost",
  });
  expect(await api.refused("POST", `/v1/snapshots/${id}/restore`, { backend: "none" })).toEqual([400, "bad_request"]);
  expect(calls).toBe(0);
  expect(api.server.operations.filter(({ operation }) => operation === "create")).toHaveLength(1);
});

test("explain previews the kept parts, and does nothing", async () => {
  const { api, other } = await startPair({ capabilities: { limits: false } });
  const box = await SandboxClient.create(api.server, { resources: { disk_mb: 50 } });
  const files = await filesOf(api, box.id);
  await files.write("/workspace/a", Buffer.from("12345"));
  await files.makeSymlink("a", "/workspace/b");
  const full = await api.take(box.id);
  const workspace = await api.take(box.id, { mode: "workspace" });
  expect(await explain(api, full.id)).toMatchObject({
    memory: "kept",
    processes: "kept",
    files: { scope: "all", count: 2 },
  });
  expect(await explain(api, workspace.id, "other")).toMatchObject({
    snapshot_id: workspace.id,
    from: "fake",
    backend: "other",
    loadable: true,
    why_not: null,
    backends: ["fake", "other"],
    memory: "lost",
    processes: "lost",
    files: { scope: "workspace", count: 2, bytes: 5, truncated: false },
    // The fake backend cannot say.
    hard_links: null,
    xattrs: { kept: 0, lost: 0 },
    notes: expect.arrayContaining(["Hard links become separate files: fake does not report them."]) as string[],
    env: "kept",
    secrets: [],
    network: "none",
    limits: "the backend has none",
  });
  expect(other.runningCount).toBe(0);
  const restored = (await api.restore(workspace.id, { backend: "other" })) as Restored;
  expect(restored).toMatchObject({ resources: {}, carried: await explain(api, workspace.id, "other") });
});

test("links that the other backend does not support are reported as lost before and after, and attributes as kept", async () => {
  const { api } = await startPair();
  const box = await SandboxClient.create(api.server);
  const { handle } = await api.server.live(box.id);
  await handle.files.write("/workspace/a", Buffer.from("1"));
  await handle.files.write("/workspace/b", Buffer.from("1"));
  const one = { device: 1n, inode: 2n, links: 2, modifiedMs: 0 };
  const files = Object.assign(Object.create(handle.files) as RawFiles, {
    stat: async (path: string) => ({ ...(await handle.files.stat(path)), links: 2 }),
    list: async (path: string) => (await handle.files.list(path)).map((entry) => ({ ...entry, ...one })),
    read: (path: string) => handle.files.read(path),
    attributes: async (path: string) => (path === "/workspace/a" ? new Map([["user.a", Buffer.from("1")]]) : new Map()),
  });
  Object.defineProperty(handle, "rawFiles", { value: files });
  const { id } = await api.take(box.id, { mode: "workspace" });
  const carried = { hard_links: { kept: 0, lost: 1 }, xattrs: { kept: 1, lost: 0 } };
  expect(await explain(api, id, "other")).toMatchObject({ ...carried, files: { count: 2, bytes: 1 } });
  const restored = (await api.restore(id, { backend: "other" })) as Restored;
  expect(restored.carried).toMatchObject(carried);
  expect((await api.sandbox(restored.id).exec({ shell: "cat a b" })).stdout).toBe("11");
});

test("another image is for a captured workspace only", async () => {
  const { api } = await startPair();
  const box = await SandboxClient.create(api.server, { image: "one" });
  const full = await api.take(box.id);
  const { id } = await api.take(box.id, { mode: "workspace" });
  expect(await api.refused("POST", `/v1/snapshots/${full.id}/restore`, { image: "two" })).toEqual([400, "bad_request"]);
  const images = [{}, { image: "two" }, { image: null }].map(async (body) => (await api.restore(id, body)).image);
  expect(await Promise.all(images)).toEqual(["one", "two", null]);
});

test("a capture that another backend packed is unpacked here", async () => {
  const { api, other } = await startPair();
  Object.assign(other, { capturesWorkspace: true });
  const acquire = other.acquire.bind(other);
  other.acquire = async (request, options) => {
    const handle = await acquire(request, options);
    handle.snapshot = async (into): Promise<SnapshotPayload> => {
      const path = join(into, "workspace.tar.gz");
      await mkdir(join(into, "w"));
      await writeFile(join(into, "w", "packed"), "by tar");
      execFileSync("tar", ["-C", join(into, "w"), "-c", "-z", "-f", path, "."]);
      const members = [{ name: "workspace.tar.gz", path, sizeBytes: (await stat(path)).size }];
      return { kind: "workspace-tar", members, requirements: { extension: "other", record: {} } };
    };
    return handle;
  };
  const box = await SandboxClient.create(api.server, { backend: "other", enable_checkpoint: false });
  const { id } = await api.take(box.id, { mode: "workspace" });
  expect(await explain(api, id, "fake")).toMatchObject({ loadable: true, files: { scope: "workspace" } });
  const restored = await api.restore(id, { backend: "fake" });
  expect((await api.sandbox(restored.id).exec({ shell: "cat /workspace/packed" })).stdout).toBe("by tar");
});

test("a backend without files neither captures nor loads a workspace", async () => {
  const { api } = await startPair({ capabilities: { files: false } });
  const there = await SandboxClient.create(api.server, { backend: "other" });
  expect(await api.refused("POST", `/v1/sandboxes/${there.id}/snapshot`, { mode: "workspace" })).toEqual([
    422,
    "not_supported",
  ]);
  const box = await SandboxClient.create(api.server);
  const { id } = await api.take(box.id, { mode: "workspace" });
  const refused = await api.call("POST", `/v1/snapshots/${id}/restore`, { backend: "other" });
  expect(refused.body.error).toMatchObject({ code: "image_incompatible", details: { backends: ["fake"] } });
});

test("without a store there is no place for a workspace", async () => {
  const { api } = await startPair({}, { store: null });
  const box = await SandboxClient.create(api.server);
  expect(await api.refused("POST", `/v1/sandboxes/${box.id}/snapshot`, { mode: "workspace" })).toEqual([
    422,
    "checkpoint_disabled",
  ]);
});

test("a sandbox that cannot load the files is not returned, and nothing of it is left", async () => {
  const { api, other } = await startPair();
  const box = await SandboxClient.create(api.server);
  await (await filesOf(api, box.id)).write("/workspace/large", new Uint8Array(2 * 1024 * 1024));
  const { id } = await api.take(box.id, { mode: "workspace" });
  const acquire = other.acquire.bind(other);
  other.acquire = (request, options) =>
    acquire({ ...request, spec: { ...request.spec, resources: { diskBytes: 1024 } } }, options);
  const failed = await api.call("POST", `/v1/snapshots/${id}/restore`, { backend: "other" });
  expect(failed.status).toBeGreaterThanOrEqual(400);
  expect(other.runningCount).toBe(0);
  const { items } = (await api.call<{ items: { id: string }[] }>("GET", "/v1/sandboxes")).body;
  expect(items.map((item) => item.id)).toEqual([box.id]);
  expect((await api.get(id)).sandboxes).toEqual([]);
});

test("a capture that fails half-way leaves nothing, and the sandbox keeps running", async () => {
  const { api } = await startPair();
  const box = await SandboxClient.create(api.server);
  const { handle } = await api.server.live(box.id);
  await handle.files.write("/workspace/secret", Buffer.from("x"));
  handle.files.read = () => ({
    [Symbol.asyncIterator]: () => ({
      next: () => Promise.reject(new SandboxerError("permission_denied", "You may not.")),
    }),
  });
  const failed = await api.call("POST", `/v1/sandboxes/${box.id}/snapshot`, { mode: "workspace" });
  expect(failed.body.error).toMatchObject({ code: "permission_denied", details: { path: "/workspace/secret" } });
  expect((await api.list()).items).toEqual([]);
  expect((await box.exec({ shell: "cat /workspace/secret" })).stdout).toBe("x");
});
