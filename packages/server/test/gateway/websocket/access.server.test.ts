import { cp, readdir } from "node:fs/promises";
import { request } from "node:http";
import { join } from "node:path";
import { describe, expect, test } from "vitest";
import { startTestServer, type TestServer } from "../../../../../test/kit/server/test-server.ts";

const DURABLE = { enable_checkpoint: true };
const DENIED = ["PERMISSION_DENIAL_ERROR", expect.stringMatching(/^error:./), 4000];
const KEYS = { apiKeys: ["first-key", "second-key"] };
const WITH_KEY = { headers: { authorization: "Bearer second-key" } };

/** Asks for an upgrade with a request line and headers that no client library would send. */
function rawUpgrade(server: TestServer, path: string, headers: Record<string, string> = {}): Promise<number> {
  const { port } = new URL(server.httpUrl);
  return new Promise((resolve, reject) => {
    const upgrade = {
      connection: "Upgrade",
      upgrade: "websocket",
      "sec-websocket-version": "13",
      "sec-websocket-key": "AAAAAAAAAAAAAAAAAAAAAA==",
    };
    const sent = request({ host: "127.0.0.1", port, path, headers: { ...upgrade, ...headers } });
    sent.on("upgrade", (response, socket) => {
      socket.destroy();
      resolve(response.statusCode ?? 0);
    });
    sent.on("response", (response) => {
      response.resume();
      resolve(response.statusCode ?? 0);
    });
    sent.on("error", reject);
    sent.end();
  });
}

describe("tokens, with no keys configured", () => {
  test.each([
    ["live", false],
    ["stored", true],
  ])("%s: a wrong token is refused and nothing moves; the right one and none attach", async (_what, stored) => {
    const server = await startTestServer();
    const { client, id, token } = await server.create(DURABLE);
    if (stored) await client.send({ action: "checkpoint" }).untilClosed();
    else await client.leave();
    const before = { running: server.backend.runningCount, operations: server.operations.length };
    for (const wrong of [
      "wrong",
      "",
      token.slice(0, -1),
      `${token}0`,
      token.toUpperCase() === token ? "x" : token.toUpperCase(),
    ]) {
      expect(await server.attach(id, `?sandbox_token=${wrong}`).untilClosed()).toEqual(DENIED);
    }
    expect({ running: server.backend.runningCount, operations: server.operations.length }).toEqual(before);
    const right = server.attach(id, `?sandbox_token=${token}`);
    expect((await right.outcome()).at(-1)).toBe("RUNNING");
    await right.leave();
    expect((await server.attach(id).outcome()).at(-1)).toBe("RUNNING");
  });

  test("a wrong token on an attached sandbox: its client notices nothing", async () => {
    const server = await startTestServer({ store: null });
    const { client, id } = await server.create();
    expect(await server.attach(id, "?sandbox_token=wrong").untilClosed()).toEqual(DENIED);
    expect(client.rest()).toEqual([]);
    expect(await client.run("bash", "echo on").until("EXECUTION_DONE")).toEqual([
      "EXECUTION_RUNNING",
      "out:on\n",
      "EXECUTION_DONE",
    ]);
  });

  test("a wrong token for a paused sandbox leaves the store unchanged", async () => {
    const server = await startTestServer();
    const { client, id } = await server.create(DURABLE);
    await client.send({ action: "checkpoint" }).untilClosed();
    const versions = async (): Promise<string[]> => readdir(join(server.storeFolder ?? "", id), { recursive: true });
    const before = await versions();
    expect(await server.attach(id, "?sandbox_token=wrong").untilClosed()).toEqual(DENIED);
    expect(await versions()).toEqual(before);
  });

  test("the token is still right after a restore", async () => {
    const server = await startTestServer();
    const { client, id, token } = await server.create(DURABLE);
    await client.send({ action: "checkpoint" }).untilClosed();
    const again = server.attach(id, `?sandbox_token=${token}`);
    await again.until("RUNNING");
    await again.leave();
    expect(await server.attach(id, "?sandbox_token=wrong").untilClosed()).toEqual(DENIED);
    expect(await server.attach(id, `?sandbox_token=${token}`).outcome()).toEqual(["RUNNING"]);
  });
});

describe("keys configured", () => {
  test("create needs a key", async () => {
    const server = await startTestServer(KEYS);
    await expect(server.connect("/create").opened).rejects.toThrow("401");
    await expect(server.connect("/create", { headers: { authorization: "Bearer wrong" } }).opened).rejects.toThrow(
      "401",
    );
    await expect(server.connect("/create", { headers: { authorization: "second-key" } }).opened).rejects.toThrow("401");
    await server.create({}, WITH_KEY);
    await server.create({}, { headers: { "x-api-key": "first-key" } });
  });

  test("attach needs a key or the token", async () => {
    const server = await startTestServer(KEYS);
    const { client, id, token } = await server.create(DURABLE, WITH_KEY);
    await client.send({ action: "checkpoint" }).untilClosed();
    await expect(server.attach(id).opened).rejects.toThrow("401");
    await expect(server.attach(id, "", { headers: { "x-api-key": "wrong" } }).opened).rejects.toThrow("401");
    expect(await server.attach(id, "?sandbox_token=wrong").untilClosed()).toEqual(DENIED);
    expect(await server.attach(id, "?sandbox_token=wrong", WITH_KEY).untilClosed()).toEqual(DENIED);
    expect(server.backend.runningCount).toBe(0);
    const byToken = server.attach(id, `?sandbox_token=${token}`);
    expect(await byToken.outcome()).toEqual(["RESTORING", "RUNNING"]);
    await byToken.leave();
    expect(await server.attach(id, "", WITH_KEY).outcome()).toEqual(["RUNNING"]);
  });

  test("a folder without a head, and so without a token, needs a key", async () => {
    const [from, to] = [await startTestServer(), await startTestServer(KEYS)];
    const { client, id } = await from.create(DURABLE);
    await client.send({ action: "checkpoint" }).untilClosed();
    await cp(join(from.storeFolder ?? "", id, "checkpoints"), join(to.storeFolder ?? "", id, "checkpoints"), {
      recursive: true,
    });
    await expect(to.attach(id).opened).rejects.toThrow("401");
    expect(await to.attach(id, "?sandbox_token=anything").untilClosed()).toEqual(DENIED);
    expect(to.backend.runningCount).toBe(0);
    expect(await to.attach(id, "", WITH_KEY).outcome()).toEqual(["RESTORING", "RUNNING"]);
  });
});

describe("browsers", () => {
  test.each(["https://evil.example", "null", "http://127.0.0.1:1", "not a url", "file://"])(
    "a page of %s is refused",
    async (origin) => {
      const server = await startTestServer({ store: null });
      await expect(server.connect("/create", { headers: { origin } }).opened).rejects.toThrow("403");
    },
  );

  test("a page of the server itself is admitted", async () => {
    const server = await startTestServer({ store: null });
    const { id } = await server.create({}, { headers: { origin: server.httpUrl } });
    expect(await server.live(id)).toBeDefined();
  });

  test.each(["evil.example", "127.0.0.1.evil.example", "localhost.evil.example", "[::2]", "10.0.0.1"])(
    "a host named %s is not this machine",
    async (host) => {
      const server = await startTestServer({ store: null });
      expect(await rawUpgrade(server, "/create", { host })).toBeOneOf([400, 403]);
    },
  );

  test.each(["localhost:80", "127.0.0.1", "127.9.9.9:1", "[::1]:80"])("a host named %s is", async (host) => {
    const server = await startTestServer({ store: null });
    expect(await rawUpgrade(server, "/create", { host })).toBe(101);
  });
});

describe("requests that no library sends", () => {
  test.each([
    ["//", 404],
    ["http://[", 404],
    ["/", 404],
    ["/attach", 404],
    ["/attach/", 404],
    ["/attach/a/b", 404],
    ["/attach/../../etc/passwd", 404],
    ["/create/x", 404],
    ["*", 404],
    ["/CREATE", 404],
  ])("%s is answered with %d, and the server keeps running", async (path, status) => {
    const server = await startTestServer({ store: null });
    expect(await rawUpgrade(server, path)).toBe(status);
    const { client } = await server.create();
    expect(await client.run("bash", "echo alive").until("EXECUTION_DONE")).toContain("out:alive\n");
  });

  test("a handshake without a key, or of another version, is refused", async () => {
    const server = await startTestServer({ store: null });
    expect(await rawUpgrade(server, "/create", { "sec-websocket-key": "short" })).toBe(400);
    expect(await rawUpgrade(server, "/create", { "sec-websocket-version": "7" })).toBeOneOf([400, 426]);
  });
});

test("more clients than the limit are refused, and connected ones continue", async () => {
  const server = await startTestServer({ store: null, maxClients: 3 });
  const { client } = await server.create();
  const silent = [server.connect("/create"), server.connect("/create")];
  await Promise.all(silent.map((each) => each.opened));
  await expect(server.connect("/create").opened).rejects.toThrow("503");
  expect(await client.run("bash", "echo on").until("EXECUTION_DONE")).toContain("out:on\n");
  await silent[0]?.leave();
  await server.create();
});
