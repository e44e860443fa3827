import { describe, expect, test } from "vitest";
import { FakeBackend } from "../../../src/backends/fake/index.ts";
import { compareFiles } from "../../../src/manager/snapshots/diff.ts";
import { decodeFileList, encodeFileList, type ListedFile } from "../../../src/manager/snapshots/file-list.ts";
import { startTestServer } from "../../../../../test/kit/server/test-server.ts";
import { SandboxClient } from "./processes/support.ts";
import { SnapshotClient } from "./snapshot-client.ts";

function file(changes: Partial<ListedFile> = {}): ListedFile {
  return { kind: "file", sizeBytes: 1, mode: 0o644, modifiedMs: 1_500, linkTarget: undefined, ...changes };
}

describe("diff", () => {
  test("works between two snapshots, and between a snapshot and a running sandbox", async () => {
    const api = new SnapshotClient(await startTestServer());
    const box = await SandboxClient.create(api.server);
    await box.exec({ shell: "echo a > stays; echo a > changes; echo a > goes; mkdir folder" });
    const from = await api.take(box.id, { name: "from" });
    expect(await api.diff("from", `sandbox:${box.id}`)).toMatchObject({ changes: [], truncated: false });
    await box.exec({ shell: "echo longer > changes; rm goes; echo b > folder/comes" });
    const to = await api.take(box.id, { name: "to" });
    const changes = [
      { path: "/workspace/changes", change: "changed", kind: "file", size_before: 2, size_after: 7 },
      { path: "/workspace/folder/comes", change: "added", kind: "file", size_before: null, size_after: 2 },
      { path: "/workspace/goes", change: "removed", kind: "file", size_before: 2, size_after: null },
    ];
    expect(await api.diff("from", "to")).toEqual({
      from: from.id,
      to: to.id,
      added: 1,
      changed: 1,
      removed: 1,
      changes,
      truncated: false,
    });
    expect(await api.diff("from", `sandbox:${box.id}`)).toMatchObject({ to: `sandbox:${box.id}`, changes });
    expect((await api.diff("to", "from")).changes.map(({ change }) => change)).toEqual(["changed", "removed", "added"]);
    const cut = await api.call("GET", "/v1/snapshots/from/diff?to=to&limit=2");
    expect(cut.body).toMatchObject({ added: 1, removed: 1, truncated: true, changes: changes.slice(0, 2) });
  });

  test("to a state that is missing or cannot be read", async () => {
    const api = new SnapshotClient(await startTestServer());
    const box = await SandboxClient.create(api.server);
    const { id } = await api.take(box.id);
    expect(await api.refused("GET", `/v1/snapshots/${id}/diff?to=unknown`)).toEqual([404, "snapshot_not_found"]);
    expect(await api.refused("GET", `/v1/snapshots/${id}/diff?to=sandbox:unknown`)).toEqual([404, "sandbox_not_found"]);
    expect(await api.refused("GET", `/v1/snapshots/${id}/diff`)).toEqual([400, "bad_request"]);
  });

  test("of a backend without files is 422", async () => {
    const backend = new FakeBackend({ capabilities: { files: false } });
    const api = new SnapshotClient(await startTestServer({ backend }));
    const box = await SandboxClient.create(api.server);
    const { id } = await api.take(box.id);
    expect(await api.refused("GET", `/v1/snapshots/${id}/diff?to=${id}`)).toEqual([422, "not_supported"]);
  });
});

describe("lists of files", () => {
  test("are decoded unchanged, whatever the names are", async () => {
    const names = ["/a", "/a\nb", '/"', "/\u0000", "/ä", "/\u2028", "/__proto__", "/constructor"];
    const files = new Map(names.map((name, index) => [name, file({ sizeBytes: index })]));
    files.set("/link", file({ kind: "symlink", linkTarget: "to\nthere" }));
    expect(await decodeFileList(await encodeFileList({ files, truncated: true }))).toEqual({ files, truncated: true });
  });

  test.each([
    ["no compression", Buffer.from("{}")],
    ["nothing", Buffer.alloc(0)],
  ])("that are damaged are reported (%s)", async (_, encoded) => {
    await expect(decodeFileList(encoded)).rejects.toMatchObject({ code: "image_damaged" });
  });

  test.each([
    ["the same", file(), file(), false],
    ["another size", file(), file({ sizeBytes: 2 }), true],
    ["another mode", file(), file({ mode: 0o600 }), true],
    ["another time", file(), file({ modifiedMs: 1_501 }), true],
    ["the second only, from a snapshot of files", file(), file({ modifiedMs: 1_000 }), false],
    ["another second", file(), file({ modifiedMs: 2_000 }), true],
    ["another kind", file(), file({ kind: "symlink" }), true],
    ["a folder with another time", file({ kind: "folder" }), file({ kind: "folder", modifiedMs: 9 }), false],
    ["another target", file({ kind: "symlink", linkTarget: "a" }), file({ kind: "symlink", linkTarget: "b" }), true],
  ])("show what changed: %s", (_, was, is, changed) => {
    expect(compareFiles(new Map([["/x", was]]), new Map([["/x", is]]))).toHaveLength(changed ? 1 : 0);
  });
});
