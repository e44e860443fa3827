import { ROUTES } from "@sandboxer/protocol";
import { expect, test } from "vitest";
import { startTestServer } from "../../../../../test/kit/server/test-server.ts";

test("describes every route in an OpenAPI 3.1 document", async () => {
  const server = await startTestServer();
  const document = (await (await fetch(`${server.httpUrl}/openapi.json`)).json()) as {
    openapi: string;
    paths: Record<string, Record<string, { operationId: string }>>;
    components: { schemas: Record<string, unknown> };
  };
  expect(document.openapi).toMatch(/^3\.1\./);
  const described = Object.values(document.paths).flatMap((path) => Object.values(path).map((o) => o.operationId));
  expect(new Set(described)).toEqual(new Set(Object.keys(ROUTES)));
  const refs = JSON.stringify(document).match(/#\/components\/schemas\/\w+/g) ?? [];
  const named = Object.keys(document.components.schemas).map((name) => `#/components/schemas/${name}`);
  expect(refs.length).toBeGreaterThan(20);
  expect(refs.filter((ref) => !named.includes(ref))).toEqual([]);
});

test("reports what is wrong with a body, and where", async () => {
  const server = await startTestServer();
  const response = await fetch(`${server.httpUrl}/v1/sandboxes`, {
    method: "POST",
    headers: { "content-type": "application/json" },
    body: JSON.stringify({ ttl: "4hours", colour: "red" }),
  });
  expect(response.status).toBe(400);
  const { error } = (await response.json()) as { error: { code: string; message: string } };
  expect(error.code).toBe("bad_request");
  expect(error.message).toContain("ttl");
  expect(error.message).toContain("colour");
});

test("a body that is announced and empty is fine where none is needed, and only there", async () => {
  const server = await startTestServer();
  const call = async (method: string, path: string): Promise<{ status: number; body: { id?: string } }> => {
    const headers = { "content-type": "application/json", "content-length": "0" };
    const answer = await fetch(server.httpUrl + path, { method, headers });
    return { status: answer.status, body: answer.status === 204 ? {} : ((await answer.json()) as { id?: string }) };
  };
  const { status, body } = await call("POST", "/v1/sandboxes");
  expect(status).toBe(201);
  const path = `/v1/sandboxes/${body.id}`;
  expect((await call("POST", `${path}/checkpoint`)).status).toBe(200);
  expect((await call("POST", `${path}/resume`)).status).toBe(200);
  expect(await call("POST", `${path}/exec`)).toMatchObject({ status: 400, body: { error: { code: "bad_request" } } });
  expect((await call("DELETE", path)).status).toBe(200);
  expect(await call("DELETE", path)).toMatchObject({ status: 410, body: { error: { code: "sandbox_destroyed" } } });
});

test("an unknown path is 404, with a code of the table", async () => {
  const server = await startTestServer();
  for (const path of ["/v1/nothing", "/nowhere"]) {
    const response = await fetch(server.httpUrl + path);
    expect(response.status).toBe(404);
    const { error } = (await response.json()) as { error: { code: string; hint: string } };
    expect(error).toMatchObject({ code: "not_found", hint: expect.stringContaining("/openapi.json") });
  }
});
