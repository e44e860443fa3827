import { expect, test } from "vitest";
import { startTestServer } from "../websocket/support/test-server.ts";

test("HEAD follows nothing", async () => {
  const server = await startTestServer();
  const head = (path: string) => fetch(server.httpUrl + path, { method: "HEAD" });
  expect((await head("/v1/events?follow=true")).status).toBe(404);
  expect((await head("/healthz")).status).toBe(200);
});
