import { Sandbox } from "e2b";
import { expect, test } from "vitest";
import { startForE2b } from "./sdk.ts";

const KEY = "a-key-of-twenty-characters";
const MALFORMED = [undefined, "", "rubbish", `${KEY}x`, KEY.slice(1), `e2b_${Buffer.from("another").toString("hex")}`];

/** Every route of the control plane that needs a key, and some that do not exist. */
const ROUTES = `
POST /sandboxes
POST /v2/sandboxes
GET /sandboxes
GET /v2/sandboxes
GET /sandboxes/ID
DELETE /sandboxes/ID
POST /sandboxes/ID/connect
POST /v2/sandboxes/ID/connect
POST /sandboxes/ID/resume
POST /sandboxes/ID/timeout
POST /sandboxes/ID/refreshes
POST /sandboxes/ID/pause
POST /sandboxes/ID/fork
POST /sandboxes/ID/snapshots
GET /sandboxes/ID/metrics
PUT /sandboxes/ID/network
GET /snapshots
DELETE /templates/ID
GET /templates
GET /v2/templates
GET /templates/aliases/base
POST /v3/templates
GET /volumes
GET /nothing
`
  .trim()
  .split("\n")
  .map((line) => line.split(" ") as [string, string]);

test("every route of the control plane refuses foreign and malformed keys, and nothing happens", async () => {
  const server = await startForE2b({ apiKeys: [KEY] });
  const { sandboxId: id } = await Sandbox.create();
  for (const key of MALFORMED) {
    for (const [method, path] of ROUTES) {
      const answer = await fetch(`${server.httpUrl}/e2b${path.replace("ID", id)}`, {
        method,
        headers: { ...(key === undefined ? {} : { "x-api-key": key }), "content-type": "application/json" },
        ...(method === "GET" ? {} : { body: "{" }),
      });
      // After some wrong keys, the address has to wait.
      const status = answer.status === 429 ? 429 : 401;
      expect([method, path, key, answer.status]).toEqual([method, path, key, status]);
      expect(await answer.json()).toMatchObject({ code: status, message: expect.any(String) });
    }
  }
  const { items } = await server.manager.list({}, { limit: 10, after: undefined });
  expect(items.map((item) => [item.id, item.state])).toEqual([[id, "running"]]);
});
