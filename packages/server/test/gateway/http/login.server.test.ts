import { expect, test } from "vitest";
import { startTestServer } from "../../../../../test/kit/server/test-server.ts";

async function startWithKey() {
  const server = await startTestServer({ store: null, apiKeys: ["the-key"] });
  const post = (path: string, headers: Record<string, string>) =>
    fetch(server.httpUrl + path, { method: "POST", headers: { origin: server.httpUrl, ...headers } });
  const login = () => post("/v1/login", { authorization: "Bearer the-key" });
  const cookieOf = (response: Response): string => response.headers.get("set-cookie")?.split(";")[0] ?? "";
  return { server, post, login, cookieOf };
}

test("a key is exchanged for a cookie, which opens HTTP and WebSocket until the logout", async () => {
  const { server, post, login, cookieOf } = await startWithKey();
  const response = await login();
  expect(response.status).toBe(200);
  expect(await response.json()).toMatchObject({ kind: "key", id: "environment:1", scopes: ["read", "use", "admin"] });
  const cookie = cookieOf(response);
  const headers = { cookie, origin: server.httpUrl };
  const get = async () => (await fetch(`${server.httpUrl}/v1/server`, { headers })).status;
  expect(await get()).not.toBe(401);
  await server.create({}, { headers });
  await expect(server.connect("/create", { headers: { cookie } }).opened).rejects.toThrow("403");
  const out = await post("/v1/logout", { cookie });
  expect([out.status, cookieOf(out)]).toEqual([204, "sandboxer_session="]);
  expect(await get()).toBe(401);
});

test("a wrong key gets no cookie, and neither does a page of another origin", async () => {
  const { post, cookieOf } = await startWithKey();
  const wrong = await post("/v1/login", { authorization: "Bearer wrong" });
  expect([wrong.status, cookieOf(wrong)]).toEqual([401, ""]);
  const elsewhere = await post("/v1/login", { authorization: "Bearer the-key", origin: "https://evil.example" });
  expect([elsewhere.status, cookieOf(elsewhere)]).toEqual([403, ""]);
});
