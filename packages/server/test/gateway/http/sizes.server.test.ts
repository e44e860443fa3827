import { once } from "node:events";
import { connect } from "node:net";
import { expect, test } from "vitest";
import { startTestServer } from "../../../../../test/kit/server/test-server.ts";
import { HttpClient, type ErrorAnswer } from "./support.ts";

const many = (count: number, text = "v"): Record<string, string> =>
  Object.fromEntries(Array.from({ length: count }, (_, number) => [`k${number}`, text]));

test.each([
  ["labels", many(64), many(65)],
  ["labels", many(63, "v".repeat(1000)), many(64, "é".repeat(1000))],
  ["env", many(256), many(257)],
  ["env", many(2, "v".repeat(100_000)), many(3, "v".repeat(100_000))],
  ["inputs", {}, many(65)],
  ["inputs", {}, many(5, "v".repeat(60_000))],
])("%s have limits", async (field, taken, refused) => {
  const http = new HttpClient(await startTestServer({ store: null }));
  expect((await http.call("POST", "/v1/sandboxes", { [field]: taken })).status).toBe(201);
  const answer = await http.call<ErrorAnswer>("POST", "/v1/sandboxes", { [field]: refused });
  expect(answer).toMatchObject({ status: 400, body: { error: { message: expect.stringContaining(field) } } });
});

test("a client that first sends the whole of a body that is too large learns why it was refused", async () => {
  const { hostname, port } = new URL((await startTestServer({ store: null })).httpUrl);
  const body = Buffer.alloc(20_000_000, " ");
  const client = connect(Number(port), hostname);
  client.write(`POST /v1/sandboxes HTTP/1.1\r\nHost: localhost\r\nContent-Type: application/json\r\n`);
  client.write(`Content-Length: ${body.length}\r\n\r\n`);
  // It reads nothing before.
  await new Promise((resolve) => client.write(body, resolve));
  const [answer] = (await once(client, "data")) as [Buffer];
  client.destroy();
  expect(answer.toString()).toMatch(/^HTTP\/1.1 413 .*"code":"too_large"/s);
});

test("a body without end is cut", async () => {
  const { hostname, port } = new URL((await startTestServer({ store: null })).httpUrl);
  const client = connect(Number(port), hostname).on("error", () => {});
  client.write(`POST /v1/sandboxes HTTP/1.1\r\nHost: localhost\r\nContent-Type: application/json\r\n`);
  client.write(`Content-Length: 100000000000\r\n\r\n`);
  const chunk = Buffer.alloc(1_000_000, " ");
  let sent = 0;
  const closed = new Promise((resolve) => client.once("close", resolve));
  const send = (): void => void client.write(chunk, (error) => error == null && (sent += 1) && send());
  send();
  await closed;
  expect(sent).toBeLessThan(200);
});

test("over WebSocket too", async () => {
  const server = await startTestServer({ store: null });
  expect(
    await server
      .connect("/create")
      .send({ labels: many(65) })
      .untilClosed(),
  ).toContain("CREATION_ERROR");
});

test("an error message is short enough to read", async () => {
  const http = new HttpClient(await startTestServer({ store: null }));
  const answer = await http.call<ErrorAnswer>("POST", "/v1/sandboxes", many(5000));
  expect(answer.status).toBe(400);
  expect(answer.body.error.message).toHaveLength(2000);
});

test("labels are not repeated in events", async () => {
  const server = await startTestServer();
  const http = new HttpClient(server);
  const { id } = await http.create();
  const snapshot = await http.call<{ id: string }>("POST", `/v1/sandboxes/${id}/snapshot`);
  const labels = { team: "labelled" };
  expect((await http.call("PATCH", `/v1/snapshots/${snapshot.body.id}`, { labels })).body).toMatchObject({ labels });
  const events = server.manager.events.after(undefined);
  expect(events.map(({ type }) => type)).toContain("snapshot.changed");
  expect(JSON.stringify(events)).not.toContain("labelled");
});
