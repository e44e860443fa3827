import type { SandboxRecord } from "@sandboxer/protocol";
import { expect, test } from "vitest";
import { startTestServer } from "../../../../../test/kit/server/test-server.ts";
import { HttpClient, type ErrorAnswer } from "./support.ts";

test("a key from X-API-Key is sent to the other server too", async () => {
  const one = await startTestServer({ apiKeys: ["k"] });
  const two = await startTestServer({ store: one.storeFolder ?? null, apiKeys: ["k"] });
  const http = new HttpClient(one);
  const asKey = { headers: { "x-api-key": "k" } };
  const { id } = (await http.call<SandboxRecord>("POST", "/v1/sandboxes", {}, asKey)).body;
  const moved = await http.call("POST", `/v1/sandboxes/${id}/handoff`, { to: two.httpUrl }, asKey);
  expect(moved).toMatchObject({ status: 200, body: { sandbox: { owner: { url: two.httpUrl } } } });
});

test("a server whose address leads back here has not claimed the sandbox, and the response says so", async () => {
  const one = await startTestServer();
  const two = await startTestServer({ store: one.storeFolder ?? null, advertiseUrl: one.httpUrl });
  const http = new HttpClient(one);
  const { id } = await http.create();
  const to = two.instances.instanceId ?? "";
  const answer = await http.call<ErrorAnswer>("POST", `/v1/sandboxes/${id}/handoff`, { to });
  expect([answer.status, answer.body.error.code]).toEqual([503, "server_unreachable"]);
  expect(answer.body.error.hint).toContain("--advertise-url");
  expect(await http.get(id)).toMatchObject({ state: "running", epoch: 1, owner: { here: true } });
});

test("a call in progress when its sandbox is paused gets the sandbox's location, not a failure", async () => {
  const server = await startTestServer();
  const http = new HttpClient(server);
  const { id } = await http.create();
  const { handle } = await server.live(id);
  const [asked, saved] = [Promise.withResolvers<void>(), Promise.withResolvers<void>()];
  const processTable = handle.processTable.bind(handle);
  handle.processTable = async () => {
    asked.resolve();
    await saved.promise;
    return processTable();
  };
  const underWay = http.call<ErrorAnswer>("GET", `/v1/sandboxes/${id}/process-table`);
  await asked.promise;
  expect((await http.call("POST", `/v1/sandboxes/${id}/checkpoint`)).status).toBe(200);
  saved.resolve();
  const { status, body } = await underWay;
  expect([status, body.error.code, body.error.details["state"]]).toEqual([409, "wrong_state", "stored"]);
});
