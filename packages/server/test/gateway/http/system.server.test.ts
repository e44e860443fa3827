import type { EventRecord } from "@sandboxer/protocol";
import { expect, test } from "vitest";
import { startTestServer } from "../../../../../test/kit/server/test-server.ts";
import { HttpClient, type ErrorAnswer } from "./support.ts";

interface Events {
  readonly items: EventRecord[];
  readonly next_cursor: string | null;
}

test("the server describes itself, its backends and the other servers", async () => {
  const server = await startTestServer();
  const http = new HttpClient(server);
  const info = await http.call<object>("GET", "/v1/server");
  expect(info.body).toMatchObject({
    store: server.storeFolder,
    default_backend: "fake",
    draining: false,
    sandboxes: 0,
  });
  const backends = await http.call<{ items: object[] }>("GET", "/v1/backends");
  expect(backends.body.items).toMatchObject([
    { name: "fake", default: true, ok: true, capabilities: { snapshot: "full" } },
  ]);
  const instances = await http.call<{ items: object[] }>("GET", "/v1/instances");
  expect(instances.body.items).toMatchObject([{ here: true, alive: true, url: server.httpUrl, owns: [] }]);
});

test("events are read from a cursor, filtered by sandbox and type", async () => {
  const http = new HttpClient(await startTestServer());
  const first = await http.create();
  const second = await http.create();
  const states = (await http.call<Events>("GET", `/v1/events?sandbox_id=${first.id}&type=sandbox.state`)).body;
  expect(states.items.map(({ data }) => data["to"])).toEqual(["creating", "running"]);
  const all = (await http.call<Events>("GET", "/v1/events")).body;
  const operations = (await http.call<Events>("GET", "/v1/events?type=operation")).body;
  expect(new Set(operations.items.map(({ type }) => type))).toEqual(new Set(["operation.started", "operation.ended"]));
  await http.call("DELETE", `/v1/sandboxes/${second.id}`);
  const later = (await http.call<Events>("GET", `/v1/events?cursor=${all.next_cursor}`)).body;
  expect(later.items.map(({ sandbox_id }) => sandbox_id)).not.toContain(first.id);
  expect(later.items.length).toBeGreaterThan(0);
  expect((await http.call<ErrorAnswer>("GET", "/v1/events?cursor=nonsense")).status).toBe(400);
  const fromOtherLife = (await http.call<Events>("GET", "/v1/events?cursor=00000000-5")).body;
  expect(fromOtherLife.items[0]).toEqual(all.items[0]);
});

test("events are followed as they happen, from a cursor without a gap", async () => {
  const server = await startTestServer();
  const http = new HttpClient(server);
  const made = await http.create();
  const { next_cursor: cursor } = (await http.call<Events>("GET", "/v1/events")).body;
  const stop = new AbortController();
  const response = await fetch(`${server.httpUrl}/v1/events?follow=true&cursor=${cursor}`, { signal: stop.signal });
  expect(response.headers.get("content-type")).toContain("text/event-stream");
  await http.call("DELETE", `/v1/sandboxes/${made.id}`);
  let text = "";
  for await (const chunk of response.body?.pipeThrough(new TextDecoderStream()) ?? []) {
    text += chunk;
    if (text.includes('"to":"gone"')) break;
  }
  stop.abort();
  const states = text
    .split("\n")
    .filter((line) => line.startsWith("data: "))
    .map((line) => JSON.parse(line.slice(6)) as EventRecord)
    .filter(({ type }) => type === "sandbox.state");
  expect(states.map(({ data }) => data["to"])).toEqual(["destroying", "gone"]);
});

test("a page from elsewhere may not call", async () => {
  const server = await startTestServer();
  const http = new HttpClient(server);
  const headers = { origin: "https://evil.example" };
  expect((await http.call("POST", "/v1/sandboxes", {}, { headers })).status).toBe(403);
});

test("with keys, a request without one gets no information", async () => {
  const server = await startTestServer({ apiKeys: ["k"] });
  const http = new HttpClient(server);
  expect((await http.call("GET", "/v1/sandboxes")).status).toBe(401);
  const headers = { authorization: "Bearer k" };
  expect((await http.call("GET", "/v1/sandboxes", undefined, { headers })).status).toBe(200);
});
