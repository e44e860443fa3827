import { expect, test } from "vitest";
import { startTestServer } from "../../../../../test/kit/server/test-server.ts";

test("a request with E2B's headers goes to the sandbox, and one without to the control plane", async () => {
  const server = await startTestServer();
  const { id } = await server.create();
  const health = (headers: Record<string, string> = {}): Promise<Response> =>
    fetch(`${server.httpUrl}/e2b/health`, { headers });
  expect((await health()).status).toBe(204);
  expect((await health({ "E2b-Sandbox-Id": id, "E2b-Sandbox-Port": "49983" })).status).toBe(204);
  const missing = await health({ "E2b-Sandbox-Id": "00000000-0000-4000-8000-000000000000" });
  expect(missing.status).toBe(502);
  expect(missing.headers.get("should-retry")).toBe("false");
  expect(await missing.json()).toMatchObject({ code: 502, message: "The sandbox was not found" });
});

test("unknown routes answer in E2B's shape, and nobody reaches internal ones directly", async () => {
  const server = await startTestServer();
  for (const path of ["/e2b/nothing", "/e2b"]) {
    const answer = await fetch(server.httpUrl + path);
    expect({ path, status: answer.status, answer: await answer.json() }).toMatchObject({
      path,
      status: 404,
      answer: { code: 404, message: expect.any(String) },
    });
  }
  for (const path of ["/internal/e2b/envd/health", "/internal/e2b/port", "/internal/elsewhere"]) {
    const answer = await fetch(server.httpUrl + path);
    expect({ path, status: answer.status, answer: await answer.json() }).toMatchObject({
      path,
      status: 404,
      answer: { error: { code: "not_found" } },
    });
  }
});
