import type { SandboxRecord } from "@sandboxer/protocol";
import { expect, test } from "vitest";
import { startTestServer } from "../websocket/support/test-server.ts";
import { HttpClient } from "./support.ts";

test("a key that came as X-API-Key is shown to the other server too", async () => {
  const one = await startTestServer({ apiKeys: ["k"] });
  const two = await startTestServer({ store: one.storeFolder ?? null, apiKeys: ["k"] });
  const http = new HttpClient(one);
  const asKey = { headers: { "x-api-key": "k" } };
  const { id } = (await http.call<SandboxRecord>("POST", "/v1/sandboxes", {}, asKey)).body;
  const moved = await http.call("POST", `/v1/sandboxes/${id}/handoff`, { to: two.httpUrl }, asKey);
  expect(moved).toMatchObject({ status: 200, body: { sandbox: { owner: { url: two.httpUrl } } } });
});
