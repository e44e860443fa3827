import type { CreatedSandboxRecord, SandboxRecord } from "@sandboxer/protocol";
import { pino } from "pino";
import { expect, test } from "vitest";
import { eventually } from "../../../../../test/kit/eventually.ts";
import { startTestServer } from "../../../../../test/kit/server/test-server.ts";
import { HttpClient } from "./support.ts";

async function audited() {
  const lines: Record<string, unknown>[] = [];
  const log = pino({ base: null }, { write: (line: string) => void lines.push(JSON.parse(line) as never) });
  const server = await startTestServer({ access: { log } });
  return {
    server,
    http: new HttpClient(server),
    lines,
    of: (what: string) => lines.filter((line) => line["what"] === what),
  };
}

test("each change has the epoch that the sandbox had before it", async () => {
  const { http, lines } = await audited();
  const { id } = await http.create();
  await http.call("POST", `/v1/sandboxes/${id}/exec`, { shell: "echo on" });
  await http.call("POST", `/v1/sandboxes/${id}/checkpoint`);
  await http.call("POST", `/v1/sandboxes/${id}/resume`);
  await http.call("PATCH", `/v1/sandboxes/${id}`, { name: "x" });
  await http.call("DELETE", `/v1/sandboxes/${id}`, undefined, { headers: { "if-sandbox-epoch": "7" } });
  await http.call("DELETE", `/v1/sandboxes/${id}`);
  const line = { audit: true, who: "anonymous", sandbox_id: id, outcome: "ok" };
  expect(lines).toMatchObject([
    { ...line, what: "createSandbox", epoch: 1 },
    { ...line, what: "exec", epoch: 1 },
    { ...line, what: "checkpointSandbox", epoch: 1 },
    { ...line, what: "resumeSandbox", epoch: 2 },
    { ...line, what: "updateSandbox", epoch: 2 },
    { ...line, what: "destroySandbox", epoch: 2, outcome: "failed", code: "stale_epoch" },
    { ...line, what: "destroySandbox", epoch: 2 },
  ]);
});

test("a call in E2B's dialect that fails is audited with the reason", async () => {
  const { http, of } = await audited();
  const nowhere = "00000000-0000-4000-8000-000000000000";
  expect((await http.call("DELETE", `/e2b/sandboxes/${nowhere}`)).status).toBe(404);
  expect(of("destroySandbox")).toMatchObject([{ sandbox_id: nowhere, outcome: "failed", code: "not_found" }]);
});

test("a fork, a restore and a repeated request leave one line for each new sandbox", async () => {
  const { http, of } = await audited();
  const { id } = await http.create();
  const fork = await http.call<{ snapshot_id: string; items: SandboxRecord[] }>("POST", `/v1/sandboxes/${id}/fork`, {
    count: 2,
  });
  const { snapshot_id, items } = fork.body;
  expect(of("forkSandbox")).toMatchObject([
    { sandbox_id: id, epoch: 1 },
    ...items.map((made) => ({ sandbox_id: made.id, snapshot_id, epoch: 1, outcome: "ok" })),
  ]);
  const headers = { "idempotency-key": "one" };
  const restore = () =>
    http.call<CreatedSandboxRecord>("POST", `/v1/snapshots/${snapshot_id}/restore`, {}, { headers });
  const { body: made } = await restore();
  await restore();
  expect(of("restoreSnapshot")).toMatchObject([{ sandbox_id: made.id, snapshot_id, epoch: 1 }]);
  expect(of("restoreSnapshot")).toHaveLength(1);
});

test("the sandbox of a key and an expired one leave a line each when they are deleted", async () => {
  const { http, of } = await audited();
  const acquire = async (body: object) =>
    (await http.call<SandboxRecord>("POST", "/v1/sandboxes/acquire", { key: "k", ...body })).body;
  const old = await acquire({});
  const other = await acquire({ env: { A: "1" } });
  expect(of("acquireSandbox")).toMatchObject([
    { sandbox_id: old.id },
    { sandbox_id: other.id },
    { sandbox_id: old.id },
  ]);
  await http.call("PATCH", `/v1/sandboxes/${other.id}/ttl`, { duration: "1s" });
  await eventually("its time is over, and it is put down", async () => (await http.get(other.id)).state === "stored");
  expect((await http.call("POST", "/v1/sandboxes/expire?apply=true")).status).toBe(200);
  expect(of("expireSandboxes")).toMatchObject([{ outcome: "ok" }, { sandbox_id: other.id, epoch: 1, outcome: "ok" }]);
});
