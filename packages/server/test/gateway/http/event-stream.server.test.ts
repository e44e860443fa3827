import { once } from "node:events";
import { connect } from "node:net";
import { expect, test } from "vitest";
import { eventStream } from "../../../src/gateway/http/event-stream.ts";
import { EventLog } from "../../../src/manager/observing/events/event-log.ts";
import { systemClock } from "../../../src/support/clock.ts";
import { eventually } from "../../../../../test/kit/eventually.ts";
import { startTestServer } from "../../../../../test/kit/server/test-server.ts";

test("HEAD follows nothing", async () => {
  const server = await startTestServer();
  const head = (path: string) => fetch(server.httpUrl + path, { method: "HEAD" });
  expect((await head("/v1/events?follow=true")).status).toBe(404);
  expect((await head("/healthz")).status).toBe(200);
});

test("a reader that reads nothing is disconnected, and nothing waits for it any more", async () => {
  const log = new EventLog(systemClock);
  let asked = 0;
  const wanted = () => ++asked > 0;
  const stream = eventStream(log, { cursor: undefined, wanted, signal: new AbortController().signal });
  stream.read(0);
  const event = { type: "x", sandboxId: null, data: { text: "y".repeat(1000) } };
  for (let turn = 0; turn < 100; turn += 1) {
    log.append(event);
    await new Promise(setImmediate);
  }
  const closed = once(stream, "close");
  for (let number = 0; number < 6000; number += 1) log.append(event);
  await closed;
  const askedBefore = asked;
  log.append(event);
  expect(asked).toBe(askedBefore);
});

test("its connection is closed", async () => {
  const server = await startTestServer();
  const socket = connect(Number(new URL(server.httpUrl).port), "127.0.0.1");
  socket.write("GET /v1/events?follow=true HTTP/1.1\r\nHost: 127.0.0.1\r\n\r\n");
  await once(socket, "readable");
  const [served] = server.sockets;
  if (served === undefined) throw new Error("the server has no connection");
  const closed = once(served, "close");
  for (let number = 0; number < 6000; number += 1) {
    server.manager.events.append({ type: "x", sandboxId: null, data: { text: "y".repeat(5000) } });
  }
  await closed;
  expect(served.destroyed).toBe(true);
  socket.destroy();
});

test("Last-Event-ID overrides the cursor in the URL", async () => {
  const server = await startTestServer();
  const { events } = server.manager;
  for (const type of ["one", "two", "three"]) events.append({ type, sandboxId: null, data: {} });
  const [first, second] = events.after(undefined);
  const stop = new AbortController();
  const response = await fetch(`${server.httpUrl}/v1/events?follow=true&cursor=${first?.cursor}`, {
    headers: { "last-event-id": second?.cursor ?? "" },
    signal: stop.signal,
  });
  let text = "";
  for await (const chunk of response.body?.pipeThrough(new TextDecoderStream()) ?? []) {
    text += chunk;
    if (text.includes("event: three")) break;
  }
  stop.abort();
  expect(text).not.toContain("event: two");
});

test("the number of followers is limited, per caller and in total", async () => {
  // A response that nobody holds may be collected, and its connection closed with it.
  const held: Response[] = [];
  const follow = async (httpUrl: string, stop: AbortController) => {
    const response = await fetch(`${httpUrl}/v1/events?follow=true`, { signal: stop.signal });
    held.push(response);
    return response.status;
  };
  const small = await startTestServer({ maxClients: 2 });
  const stops = Array.from({ length: 65 }, () => new AbortController());
  const statuses: number[] = [];
  for (const stop of stops.slice(0, 3)) statuses.push(await follow(small.httpUrl, stop));
  expect(statuses).toEqual([200, 200, 429]);
  stops[0]?.abort();
  await eventually("there is a place again", async () => (await follow(small.httpUrl, new AbortController())) === 200);
  const large = await startTestServer();
  const many: number[] = [];
  for (const stop of stops.slice(1)) many.push(await follow(large.httpUrl, stop));
  expect(new Set(many)).toEqual(new Set([200]));
  expect(await follow(large.httpUrl, new AbortController())).toBe(429);
  expect(held.length).toBeGreaterThan(64);
});
