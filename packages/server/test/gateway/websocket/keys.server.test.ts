import { pino } from "pino";
import { describe, expect, test } from "vitest";
import { WebSocket } from "ws";
import { KeyFile } from "../../../src/gateway/access/key-file.ts";
import { FakeClock } from "../../lease/fake-clock.ts";
import { eventually } from "../../../../../test/kit/eventually.ts";
import { temporaryFolder } from "../../../../../test/kit/temporary-folder.ts";
import { startTestServer, type TestServer } from "../../../../../test/kit/server/test-server.ts";

const bearer = (key: string) => ({ headers: { authorization: `Bearer ${key}` } });

/** A server with stored keys, one of each scope, and its audit lines. */
async function startKeyed() {
  const lines: Record<string, unknown>[] = [];
  const log = pino({ base: null }, { write: (line: string) => void lines.push(JSON.parse(line) as never) });
  const file = new KeyFile(await temporaryFolder());
  const [read, use] = await Promise.all([
    file.create({ name: "reader", scope: "read" }),
    file.create({ name: "user", scope: "use" }),
  ]);
  const server = await startTestServer({ access: { keyFile: file.path, log } });
  return { server, file, read, use, lines };
}

/** A request for a WebSocket that is refused: the status, the headers and the error. */
async function refusal(server: TestServer, path: string, headers: Record<string, string> = {}) {
  const socket = new WebSocket(server.url + path, { headers });
  socket.on("error", () => {});
  const response = await new Promise<import("node:http").IncomingMessage>((resolve, reject) => {
    socket.on("unexpected-response", (_request, answer) => resolve(answer));
    socket.on("open", () => reject(new Error("it was let in")));
  });
  const body = JSON.parse(Buffer.concat(await response.toArray()).toString()) as { error: Record<string, unknown> };
  return { status: response.statusCode, headers: response.headers, error: body.error };
}

describe("scopes", () => {
  test("creating needs use", async () => {
    const { server, read, use } = await startKeyed();
    expect(await refusal(server, "/create", bearer(read.text).headers)).toMatchObject({
      status: 403,
      error: { code: "permission_denied", message: "This needs the scope use; reader has read." },
    });
    expect(await refusal(server, "/create")).toMatchObject({
      status: 401,
      headers: { "www-authenticate": "Bearer" },
      error: { code: "unauthorized", retryable: false },
    });
    await server.create({}, bearer(use.text));
  });

  test("attaching needs use or the sandbox's token, even with a key of a smaller scope", async () => {
    const { server, read, use } = await startKeyed();
    const { client, id, token } = await server.create({}, bearer(use.text));
    await client.leave();
    expect(await refusal(server, `/attach/${id}`, bearer(read.text).headers)).toMatchObject({ status: 403 });
    const byToken = server.attach(id, `?sandbox_token=${token}`, bearer(read.text));
    expect(await byToken.outcome()).toEqual(["RUNNING"]);
    await byToken.leave();
    expect(await server.attach(id, "", bearer(use.text)).outcome()).toEqual(["RUNNING"]);
  });
});

describe("browsers send the key as a subprotocol", () => {
  const offer = (key: string): string => `sandboxer.bearer.${Buffer.from(key).toString("base64url")}`;

  test("the server answers with its own, and never repeats the key", async () => {
    const { server, use } = await startKeyed();
    const socket = new WebSocket(`${server.url}/create`, [offer(use.text), "sandboxer.v1"]);
    await new Promise((resolve, reject) => socket.once("open", resolve).once("error", reject));
    expect(socket.protocol).toBe("sandboxer.v1");
    socket.terminate();
  });

  test("a wrong key is refused there too", async () => {
    const { server } = await startKeyed();
    const headers = { "sec-websocket-protocol": `sandboxer.v1, ${offer("wrong")}` };
    expect(await refusal(server, "/create", headers)).toMatchObject({ status: 401 });
  });

  test("a client that offers another protocol gets it, as ever", async () => {
    const server = await startTestServer({ store: null });
    const socket = new WebSocket(`${server.url}/create`, ["chat"]);
    await new Promise((resolve, reject) => socket.once("open", resolve).once("error", reject));
    expect(socket.protocol).toBe("chat");
    socket.terminate();
  });
});

test("a revoked key disconnects its clients and keeps their sandbox; others stay", async () => {
  const { server, file, use } = await startKeyed();
  const other = await file.create({ name: "other", scope: "use" });
  const { client, id } = await server.create({}, bearer(use.text));
  const { client: stays } = await server.create({}, bearer(other.text));
  await file.revoke(use.record.id);
  expect(await client.untilClosed()).toEqual([
    "PERMISSION_DENIAL_ERROR",
    "error:The key was revoked or has expired.",
    4000,
  ]);
  expect(await refusal(server, "/create", bearer(use.text).headers)).toMatchObject({ status: 401 });
  expect(await stays.run("bash", "echo on").until("EXECUTION_DONE")).toContain("out:on\n");
  await eventually("the sandbox is free", async () => {
    const again = server.attach(id, "", bearer(other.text));
    return (await again.outcome()).at(-1) === "RUNNING";
  });
});

test("too many openings are refused, with the time to wait", async () => {
  const server = await startTestServer({
    store: null,
    access: { rateLimit: 1, rateBurst: 2, clock: new FakeClock() },
  });
  await server.create();
  await server.create();
  expect(await refusal(server, "/create")).toMatchObject({
    status: 429,
    headers: { "retry-after": "1" },
    error: { code: "rate_limited", retryable: true, details: { retry_after_seconds: 1 } },
  });
});

test("each action leaves a line: the caller, the action, the sandbox, the epoch and the outcome", async () => {
  const { server, read, use, lines } = await startKeyed();
  const { client, id, token } = await server.create({ enable_checkpoint: true }, bearer(use.text));
  await client.run("bash", "echo secret-text").until("EXECUTION_DONE");
  await client.send({ action: "snapshot_filesystem", name: "base" }).until("FILESYSTEM_SNAPSHOT_CREATED");
  await client.send({ action: "checkpoint" }).untilClosed();
  await refusal(server, `/attach/${id}`, bearer(read.text).headers);
  await server.attach(id, "?sandbox_token=wrong").untilClosed();
  const again = server.attach(id, `?sandbox_token=${token}`);
  await again.until("RUNNING");
  await again.send({ action: "kill_sandbox" }).untilClosed();
  const user = { audit: true, who: `key:${use.record.id}`, name: "user", sandbox_id: id, outcome: "ok", epoch: 1 };
  const holder = { audit: true, who: "token", sandbox_id: id, outcome: "ok" };
  expect(lines).toMatchObject([
    { ...user, what: "create", address: "127.0.0.1" },
    { ...user, what: "execute" },
    { ...user, what: "snapshot_filesystem" },
    { ...user, what: "checkpoint" },
    { who: `key:${read.record.id}`, what: "attach", sandbox_id: id, outcome: "refused", code: "permission_denied" },
    { ...holder, what: "attach", outcome: "refused", code: "permission_denied" },
    { ...holder, what: "attach", epoch: 2 },
    { ...holder, what: "kill_sandbox", epoch: 2 },
  ]);
  const text = JSON.stringify(lines);
  for (const secret of [use.text, read.text, token, "secret-text"]) expect(text).not.toContain(secret);
});
