import { once } from "node:events";
import { connect } from "node:net";
import { text as textOf } from "node:stream/consumers";
import { describe, expect, test } from "vitest";
import { startTestServer } from "../../../../../test/kit/server/test-server.ts";
import { HttpClient, type ErrorAnswer } from "./support.ts";

describe("every refusal has a code of the table", () => {
  test.each([
    ["GET", "/v1/sandboxes/%zz", undefined, 400, "bad_request"],
    ["GET", `/v1/sandboxes/${"x".repeat(200)}`, undefined, 400, "bad_request"],
    ["GET", `/v1/sandboxes/${"x".repeat(2000)}`, undefined, 400, "bad_request"],
    ["POST", "/internal/ring/some-id", "{", 400, "bad_request"],
    ["POST", "/v1/sandboxes", "{", 400, "bad_request"],
    ["POST", "/v1/sandboxes", '{"ttl":"99999999d"}', 400, "bad_request"],
    ["POST", "/v1/sandboxes", '{"idle_timeout":"99999999d"}', 400, "bad_request"],
  ])("%s %.40s with %s", async (method, path, body, status, code) => {
    const server = await startTestServer({ store: null });
    const response = await fetch(server.httpUrl + path, {
      method,
      ...(body === undefined ? {} : { body, headers: { "content-type": "application/json" } }),
    });
    const { error } = (await response.json()) as ErrorAnswer;
    expect([response.status, error.code]).toEqual([status, code]);
    expect(error.hint).not.toBe("");
  });

  test("input that is not HTTP", async () => {
    const server = await startTestServer({ store: null });
    const socket = connect(Number(new URL(server.httpUrl).port), "127.0.0.1");
    await once(socket, "connect");
    socket.write("nonsense\r\n\r\n");
    const answer = await textOf(socket);
    expect(answer).toMatch(/^HTTP\/1.1 400 /);
    expect(JSON.parse(answer.slice(answer.indexOf("\r\n\r\n")))).toMatchObject({ error: { code: "bad_request" } });
  });

  test("the longest time to live is ten years", async () => {
    const http = new HttpClient(await startTestServer({ store: null }));
    expect((await http.call("POST", "/v1/sandboxes", { ttl: "3650d" })).status).toBe(201);
  });
});
