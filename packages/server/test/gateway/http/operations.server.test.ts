import type { CreatedSandboxRecord, OperationRecordBody } from "@sandboxer/protocol";
import { expect, onTestFinished, test, vi } from "vitest";
import { KeyFile } from "../../../src/gateway/access/key-file.ts";
import { eventually } from "../../../../../test/kit/eventually.ts";
import { temporaryFolder } from "../../../../../test/kit/temporary-folder.ts";
import { startTestServer } from "../../../../../test/kit/server/test-server.ts";
import { HttpClient } from "./support.ts";

interface OperationPage {
  readonly items: OperationRecordBody[];
}

test("the result of an operation is only for the key that requested it", async () => {
  const keys = new KeyFile(await temporaryFolder());
  const [maker, reader] = await Promise.all([
    keys.create({ name: "maker", scope: "use" }),
    keys.create({ name: "reader", scope: "read" }),
  ]);
  const http = new HttpClient(await startTestServer({ access: { keyFile: keys.path } }));
  const asMaker = { headers: { authorization: `Bearer ${maker.text}` } };
  const asReader = { headers: { authorization: `Bearer ${reader.text}` } };
  const made = await http.call<CreatedSandboxRecord>("POST", "/v1/sandboxes", {}, asMaker);
  const { items } = (await http.call<OperationPage>("GET", "/v1/operations", undefined, asReader)).body;
  const path = `/v1/operations/${items[0]?.id}`;
  expect((await http.call("GET", path, undefined, asReader)).body).toMatchObject({ state: "done", result: null });
  expect((await http.call("GET", path, undefined, asMaker)).body).toMatchObject({ result: { token: made.body.token } });
});

test("a caller that waits for an operation leaves no timer behind", async () => {
  const server = await startTestServer({ store: null });
  const http = new HttpClient(server);
  const gate = Promise.withResolvers<void>();
  server.backend.faults.set("acquire", { until: gate.promise, times: 1 });
  const headers = { prefer: "respond-async" };
  const { id } = (await http.call<OperationRecordBody>("POST", "/v1/sandboxes", {}, { headers })).body;
  const started = vi.spyOn(globalThis, "setTimeout");
  const cleared = vi.spyOn(globalThis, "clearTimeout");
  onTestFinished(() => void vi.restoreAllMocks());
  const timers = (): unknown[] =>
    started.mock.calls.flatMap(([, ms], index) => (ms === 59_000 ? [started.mock.results[index]?.value] : []));
  const waits = Array.from({ length: 20 }, () => http.call<OperationRecordBody>("GET", `/v1/operations/${id}?wait=59`));
  await eventually("all wait", () => timers().length === 20);
  gate.resolve();
  for (const { body } of await Promise.all(waits)) expect(body.state).toBe("done");
  const ended = new Set<unknown>(cleared.mock.calls.map(([timer]) => timer));
  expect(timers().filter((timer) => !ended.has(timer))).toEqual([]);
});

test("a request that is refused or repeated leaves no operation that never ends", async () => {
  const server = await startTestServer();
  const http = new HttpClient(server);
  const bad = { headers: { "if-sandbox-epoch": "no" } };
  expect((await http.call("POST", "/v1/sandboxes/some-id/checkpoint", undefined, bad)).status).toBe(400);
  const again = { headers: { "idempotency-key": "one" } };
  const made = await http.call<CreatedSandboxRecord>("POST", "/v1/sandboxes", {}, again);
  expect((await http.call("POST", "/v1/sandboxes", {}, again)).body).toEqual(made.body);
  expect((await http.call("POST", "/v1/sandboxes", { name: "other" }, again)).status).toBe(400);
  expect(server.manager.operations.records()).toMatchObject([{ kind: "create", state: "done" }]);
});

test("a repeated request with respond-async has the first one's operation", async () => {
  const server = await startTestServer();
  const http = new HttpClient(server);
  const gate = Promise.withResolvers<void>();
  server.backend.faults.set("acquire", { until: gate.promise, times: 1 });
  const headers = { "idempotency-key": "one", prefer: "respond-async" };
  const create = () => http.call<OperationRecordBody>("POST", "/v1/sandboxes", {}, { headers });
  const first = await create();
  expect(first).toMatchObject({ status: 202, body: { state: "running" } });
  expect((await create()).body.id).toBe(first.body.id);
  gate.resolve();
  await server.manager.operations.find(first.body.id)?.ended;
  const later = await create();
  expect(later).toMatchObject({
    status: 202,
    body: { id: first.body.id, state: "done", result: { state: "running" } },
  });
  expect(Object.values(server.manager.states())).toEqual([1]);
});
