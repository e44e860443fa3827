import { pino } from "pino";
import { Sandbox } from "e2b";
import { expect, test } from "vitest";
import { startTestServer } from "../../../../../test/kit/server/test-server.ts";
import { startForE2b } from "./sdk.ts";

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

test("unknown routes and fields are logged with the client's version, and without secrets", async () => {
  const lines: Record<string, unknown>[] = [];
  const log = pino({}, { write: (line) => void lines.push(JSON.parse(line) as Record<string, unknown>) });
  const { httpUrl, e2bToken } = await startForE2b({ log });
  const { sandboxId: id } = await Sandbox.create();
  // A client whose routes are not here, as one of tomorrow.
  await expect(Sandbox.create({ apiUrl: `${httpUrl}/e2b/of-tomorrow` })).rejects.toThrow("404");
  const secret = e2bToken(id);
  const named = { "e2b-sandbox-id": id, "x-access-token": secret, "user-agent": "a client" };
  await fetch(`${httpUrl}/e2b/freeze?signature=${secret}`, { headers: named });
  await fetch(`${httpUrl}/e2b/kernels`, { headers: { ...named, "e2b-sandbox-port": "49999" } });
  await fetch(`${httpUrl}/e2b/v2/sandboxes`, {
    method: "POST",
    headers: { "user-agent": "a client", "content-type": "application/json" },
    body: JSON.stringify({ templateID: "base", ofTomorrow: secret }),
  });
  const told = lines.filter(({ msg }) => String(msg).startsWith("unknown"));
  const [version, language] = [expect.stringMatching(/^\d+\.\d+\.\d+$/) as unknown, "js"];
  expect(told).toMatchObject([
    { msg: "unknown route of E2B", method: "POST", path: "/of-tomorrow/v2/sandboxes", version, language },
    { msg: "unknown route of E2B", path: expect.stringMatching(/\/freeze$/), client: "a client", version: "unknown" },
    { msg: "unknown route of E2B", path: expect.stringMatching(/\/kernels$/), client: "a client" },
    { msg: "unknown fields of E2B", route: "/e2b/v2/sandboxes", fields: ["ofTomorrow"], client: "a client" },
  ]);
  expect(JSON.stringify(lines)).not.toContain(secret);
});
