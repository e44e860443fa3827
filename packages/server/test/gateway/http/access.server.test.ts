import { pino } from "pino";
import { describe, expect, test } from "vitest";
import { KeyFile } from "../../../src/gateway/access/key-file.ts";
import { FakeClock } from "../../lease/fake-clock.ts";
import { temporaryFolder } from "../../../../../test/kit/temporary-folder.ts";
import { startTestServer } from "../../../../../test/kit/server/test-server.ts";

async function startKeyed() {
  const lines: Record<string, unknown>[] = [];
  const log = pino({ base: null }, { write: (line: string) => void lines.push(JSON.parse(line) as never) });
  const file = new KeyFile(await temporaryFolder());
  const read = await file.create({ name: "reader", scope: "read" });
  const server = await startTestServer({ access: { keyFile: file.path, log } });
  const destroy = async (headers: Record<string, string>) => {
    const response = await fetch(`${server.httpUrl}/v1/sandboxes/some-id`, { method: "DELETE", headers });
    const { error } = (await response.json()) as { error: { code: string; message: string } };
    return { status: response.status, code: error.code, message: error.message };
  };
  return { server, read, lines, destroy };
}

describe("HTTP requires a key with the route's scope", () => {
  test("no key: 401; a smaller scope: 403 with the needed scope, and a line in the audit log", async () => {
    const { read, lines, destroy } = await startKeyed();
    expect(await destroy({})).toMatchObject({ status: 401, code: "unauthorized" });
    expect(lines).toEqual([]);
    expect(await destroy({ authorization: `Bearer ${read.text}` })).toEqual({
      status: 403,
      code: "permission_denied",
      message: "This needs the scope use; reader has read.",
    });
    expect(lines).toMatchObject([
      { audit: true, name: "reader", what: "destroySandbox", outcome: "refused", code: "permission_denied" },
    ]);
  });

  test("a page of another origin: 403, whatever key it has", async () => {
    const { read, destroy } = await startKeyed();
    const headers = { authorization: `Bearer ${read.text}`, origin: "https://evil.example" };
    expect(await destroy(headers)).toMatchObject({ status: 403, message: expect.stringContaining("other origins") });
  });
});

test("metrics of a server with keys need a key; its health does not", async () => {
  const { server, read } = await startKeyed();
  const status = async (path: string, headers: Record<string, string> = {}) =>
    (await fetch(server.httpUrl + path, { headers })).status;
  expect(await status("/metrics")).toBe(401);
  expect(await status("/metrics", { authorization: `Bearer ${read.text}` })).toBe(200);
  expect(await Promise.all(["/healthz", "/readyz", "/openapi.json"].map((path) => status(path)))).toEqual([
    200, 200, 200,
  ]);
  const open = await startTestServer({ store: null });
  expect((await fetch(`${open.httpUrl}/metrics`)).status).toBe(200);
});

test("too many requests: 429, with the time to wait", async () => {
  const server = await startTestServer({
    store: null,
    access: { rateLimit: 1, rateBurst: 1, clock: new FakeClock() },
  });
  const get = () => fetch(`${server.httpUrl}/v1/server`);
  expect((await get()).status).not.toBe(429);
  const refused = await get();
  expect([refused.status, refused.headers.get("retry-after")]).toEqual([429, "1"]);
});
