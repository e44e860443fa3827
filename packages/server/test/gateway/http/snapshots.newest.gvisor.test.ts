import type { CreatedSandboxRecord, OperationRecordBody, SandboxRecord } from "@sandboxer/protocol";
import { describe, expect, test } from "vitest";
import { ServerProcess, whyNoEngine } from "../../../../../test/kit/server/server-process.ts";
import { temporaryFolder } from "../../../../../test/kit/temporary-folder.ts";
import { SandboxClient } from "./processes/support.ts";
import { count, SnapshotClient } from "./snapshot-client.ts";

const missing = whyNoEngine();
if (missing !== undefined) console.warn(`The tests of snapshots over HTTP on gVisor are skipped: ${missing}`);

/** Keeps its number, and 20 MB beside it, in memory alone. */
const COUNTER = `
import sys
ballast = bytearray(b"x") * 20_000_000
number = 0
for line in sys.stdin:
    number += 1
    print("count", number, flush=True)
`;
/** Facts that must differ between two forks. A fresh sandbox may have no machine id. */
const SECRETS = "hostname; cat /etc/machine-id || echo none; head -c 16 /dev/urandom | od -An -tx1";

const httpOf = (server: ServerProcess): { httpUrl: string } => ({ httpUrl: server.url.replace(/^ws/, "http") });

async function startCounter(box: SandboxClient): Promise<string> {
  return (await box.spawn({ language: "python", code: COUNTER })).id;
}

describe.skipIf(missing !== undefined)("snapshots over HTTP, on gVisor", () => {
  test("capture, restore, fork, rewind and diff, with a number that is only in memory", async () => {
    const store = await temporaryFolder();
    const process = await ServerProcess.start({ store });
    const api = new SnapshotClient(httpOf(process));
    const box = await SandboxClient.create(api.server, { name: "box" });
    const counter = await startCounter(box);
    expect([await count(box, counter), await count(box, counter)]).toEqual([1, 2]);
    await box.exec({
      shell: "echo two > number; mkdir -p folder; ln -s number link; printf 'x' > $'folder/new\\nline'",
    });

    const two = await api.take(box.id, { name: "two" });
    expect(two).toMatchObject({ mode: "full", kind: "gvisor-checkpoint", state: "ready" });
    expect(two.size_bytes).toBeGreaterThan(500_000);
    const operations = await fetch(`${httpOf(process).httpUrl}/v1/operations?kind=snapshot`);
    const [taken] = ((await operations.json()) as { items: OperationRecordBody[] }).items;
    expect(taken?.paused_ms).toBeGreaterThan(0);
    expect(taken?.paused_ms).toBeLessThan(taken?.elapsed_ms ?? 0);
    expect(await api.diff("two", `sandbox:${box.id}`)).toMatchObject({ changes: [], truncated: false });
    expect(await count(box, counter)).toBe(3);
    await box.exec({ shell: "echo three! > number; rm link; echo new > /tmp/fresh" });
    await api.take(box.id, { name: "three" });
    expect((await api.diff("two", "three")).changes).toEqual([
      { path: "/tmp/fresh", change: "added", kind: "file", size_before: null, size_after: 4 },
      { path: "/workspace/link", change: "removed", kind: "symlink", size_before: 6, size_after: null },
      { path: "/workspace/number", change: "changed", kind: "file", size_before: 4, size_after: 7 },
    ]);

    const restored = await api.restore("two");
    const copy = api.sandbox(restored.id);
    expect(await count(copy, counter)).toBe(3);
    expect((await copy.exec({ shell: "cat number link" })).stdout).toBe("two\ntwo\n");
    expect(await api.diff("two", `sandbox:${copy.id}`)).toMatchObject({ changes: [] });

    const { items } = (await box.call<{ items: CreatedSandboxRecord[] }>("POST", "/fork", { count: 3 })).body;
    const forks = items.map(({ id }) => api.sandbox(id));
    const numbers = await Promise.all(forks.map(async (fork) => await count(fork, counter)));
    expect(numbers).toEqual([4, 4, 4]);
    const secrets = await Promise.all(
      [box, ...forks].map(async (each) => (await each.exec({ shell: SECRETS })).stdout),
    );
    for (const line of [0, 1, 2]) expect(new Set(secrets.map((text) => text.split("\n")[line])).size).toBe(4);
    expect(await count(box, counter)).toBe(4);

    const rewound = await box.call<SandboxRecord>("POST", "/rewind", { snapshot_id: "two" });
    expect(rewound.status).toBe(200);
    expect(rewound.body.id).toBe(box.id);
    expect(await count(box, counter)).toBe(3);
    expect((await box.exec({ shell: "cat number; ls /tmp/fresh" })).stdout).toBe("two\n");

    const files = await api.take(box.id, { mode: "filesystem" });
    expect(files).toMatchObject({ mode: "filesystem", kind: "workspace-tar", parent: two.id });
    const plain = api.sandbox((await api.restore(files.id)).id);
    expect(await plain.processes()).toEqual([]);
    expect((await plain.exec({ shell: "cat number" })).stdout).toBe("two\n");
    const untouched = (await api.diff(files.id, `sandbox:${plain.id}`)).changes.map(({ path }) => path);
    expect(untouched.filter((path) => path.startsWith("/workspace"))).toEqual([]);

    for (const { id } of [...items, restored, { id: plain.id }]) await api.call("DELETE", `/v1/sandboxes/${id}`);
    expect(await api.get("two", "?verify=true")).toMatchObject({ state: "ready", sandboxes: [box.id] });

    // A rewind outlives its server, and so does a sandbox that was restored and never saved.
    const late = await api.restore("three");
    await process.killHard();
    const next = new SnapshotClient(httpOf(await ServerProcess.start({ store, dataHome: process.dataHome })));
    for (const [id, number] of [
      [box.id, 3],
      [late.id, 4],
    ] as const) {
      expect((await next.call("POST", `/v1/sandboxes/${id}/resume`)).status).toBe(200);
      expect(await count(next.sandbox(id), counter)).toBe(number);
    }
  });
});
