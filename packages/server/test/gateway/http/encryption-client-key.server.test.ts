import { randomUUID } from "node:crypto";
import { createServer, type IncomingHttpHeaders } from "node:http";
import type { AddressInfo } from "node:net";
import type { CreatedSandboxRecord, SandboxRecord, SnapshotInfo } from "@sandboxer/protocol";
import { pino } from "pino";
import { describe, expect, onTestFinished, test, vi } from "vitest";
import type { SandboxBackend } from "../../../src/backends/backend.ts";
import { FakeBackend } from "../../../src/backends/fake/index.ts";
import { filesIn, newKey, serverKeys } from "../../checkpoints/keys/key-lab.ts";
import { temporaryFolder } from "../../../../../test/kit/temporary-folder.ts";
import { startTestServer } from "../../../../../test/kit/server/test-server.ts";
import {
  KEY,
  fingerprint,
  HEADER,
  OTHER_HEADER,
  MARK,
  start,
  create,
  write,
  read,
  plainImages,
  refusal,
} from "./encryption-lab.ts";
import { type ErrorAnswer, HttpClient } from "./support.ts";

describe("a sandbox under its client's key", () => {
  test("is saved and restored with its key, and not without", async () => {
    const { server, http } = await start();
    const { id, encryption } = await create(http);
    expect(encryption).toEqual({ held_by: "client", key: fingerprint });
    await write(server, id);
    // Automatic saves use the key, which the server keeps while the sandbox is here.
    expect((await http.call("POST", `/v1/sandboxes/${id}/checkpoint`, { leave_running: true })).status).toBe(200);
    expect((await http.call("POST", `/v1/sandboxes/${id}/checkpoint`)).status).toBe(200);
    const resume = `/v1/sandboxes/${id}/resume`;
    expect(await refusal(http, "POST", resume)).toMatchObject({
      status: 403,
      code: "key_required",
      details: { fingerprint },
      hint: expect.stringContaining("Sandboxer-Encryption-Key") as string,
    });
    expect(await refusal(http, "POST", resume, undefined, OTHER_HEADER)).toMatchObject({ code: "wrong_key" });
    expect(await http.get(id)).toMatchObject({ state: "stored", epoch: 1 });
    expect((await http.call("POST", resume, undefined, HEADER)).status).toBe(200);
    expect(await read(server, id)).toBe(MARK);
    expect(await plainImages(server)).toEqual([]);
    const plain = await http.create();
    await write(server, plain.id);
    await http.call("POST", `/v1/sandboxes/${plain.id}/checkpoint`);
    expect(await plainImages(server)).toHaveLength(1);
  });

  test("needs its key for forks, snapshots and everything created from them", async () => {
    const { server, http } = await start({ masterKeys: serverKeys(new Map([["main", newKey()]]), "main") });
    const { id } = await create(http);
    await write(server, id);
    const taken = await http.call<SnapshotInfo>("POST", `/v1/sandboxes/${id}/snapshot`, { name: "mine" });
    expect(taken.body.encryption).toEqual({ held_by: "client", key: fingerprint });
    const needed = { code: "key_required" };
    expect(await refusal(http, "POST", "/v1/snapshots/mine/restore", {})).toMatchObject(needed);
    expect(await refusal(http, "GET", "/v1/snapshots/mine?verify=true")).toMatchObject(needed);
    expect(await refusal(http, "GET", `/v1/snapshots/mine/diff?to=sandbox:${id}`)).toMatchObject(needed);
    expect(await refusal(http, "POST", "/v1/snapshots/mine/prove")).toMatchObject(needed);
    expect(await refusal(http, "POST", `/v1/sandboxes/${id}/fork`, { count: 2 })).toMatchObject(needed);
    expect(await refusal(http, "POST", `/v1/sandboxes/${id}/rewind`, { snapshot_id: "mine" })).toMatchObject(needed);
    expect((await http.call<SnapshotInfo>("GET", "/v1/snapshots/mine")).body).toMatchObject({ state: "ready" });

    const verified = await http.call<SnapshotInfo>("GET", "/v1/snapshots/mine?verify=true", undefined, HEADER);
    expect(verified.body.state).toBe("ready");
    expect((await http.call("GET", `/v1/snapshots/mine/diff?to=sandbox:${id}`, undefined, HEADER)).status).toBe(200);
    const restored = await http.call<CreatedSandboxRecord>("POST", "/v1/snapshots/mine/restore", {}, HEADER);
    expect(restored.body.encryption).toEqual({ held_by: "client", key: fingerprint });
    expect(await read(server, restored.body.id)).toBe(MARK);
    const forked = await http.call<{ items: SandboxRecord[] }>(
      "POST",
      `/v1/sandboxes/${id}/fork`,
      { count: 2 },
      HEADER,
    );
    expect(forked.body.items.map(({ encryption }) => encryption?.key)).toEqual([fingerprint, fingerprint]);
    expect((await http.call("POST", `/v1/sandboxes/${id}/rewind`, { snapshot_id: "mine" }, HEADER)).status).toBe(200);
  });

  test("does not become part of a sandbox that the server can read", async () => {
    const { http } = await start();
    const { id } = await create(http);
    await http.call("POST", `/v1/sandboxes/${id}/snapshot`, { name: "mine" });
    const other = await http.create();
    const rewind = `/v1/sandboxes/${other.id}/rewind`;
    expect(await refusal(http, "POST", rewind, { snapshot_id: "mine" }, HEADER)).toMatchObject({
      code: "not_supported",
    });
  });

  test("is attached with its key over WebSocket; without it, the error names the key", async () => {
    const { server, http } = await start();
    const { client, id } = await server.create({ enable_checkpoint: true }, HEADER);
    expect((await http.get(id)).encryption).toEqual({ held_by: "client", key: fingerprint });
    client.send({ action: "checkpoint" });
    await client.until("CHECKPOINTED");
    const refused = await server.attach(id).outcome();
    expect(refused).toContain("RESTORE_ERROR");
    // Browsers can set no headers on a WebSocket; the key is not repeated as the subprotocol that was agreed on.
    const offer = `sandboxer.encryption-key.${KEY.replaceAll("+", "-").replaceAll("/", "_").replace("=", "")}`;
    const socket = new WebSocket(`${server.url}/attach/${id}`, ["sandboxer.v1", offer]);
    const running = Promise.withResolvers<void>();
    socket.addEventListener("message", ({ data }) => String(data).includes("SANDBOX_RUNNING") && running.resolve());
    socket.addEventListener("close", () => running.reject(new Error("closed")));
    await running.promise;
    expect(socket.protocol).toBe("sandboxer.v1");
    socket.close();
  });

  test("moves to another server that gets its key from the client; servers do not pass it on", async () => {
    const { server, http } = await start();
    const two = await startTestServer({ store: server.storeFolder ?? null });
    const { id } = await create(http);
    await write(server, id);
    const handoff = `/v1/sandboxes/${id}/handoff`;
    for (const shown of [{}, HEADER]) {
      expect(await refusal(http, "POST", handoff, { to: two.httpUrl }, shown)).toMatchObject({
        code: "key_required",
        hint: expect.stringContaining(`POST ${two.httpUrl}/v1/sandboxes/${id}/resume`),
      });
    }
    const there = new HttpClient(two);
    expect(await refusal(there, "POST", `/v1/sandboxes/${id}/resume`)).toMatchObject({ code: "key_required" });
    expect(await http.get(id)).toMatchObject({ state: "running", epoch: 1, owner: { here: true } });
    expect((await there.call("POST", `/v1/sandboxes/${id}/resume`, undefined, HEADER)).status).toBe(200);
    expect(await read(two, id)).toBe(MARK);
  });

  test("is used through a server without its key, which proves that the client sent the key", async () => {
    const { server, http } = await start();
    const asked = new HttpClient(await startTestServer({ store: server.storeFolder ?? null }));
    const { id } = await create(http);
    const relayed = { "sandboxer-relay": "allow" };
    const fork = `/v1/sandboxes/${id}/fork`;
    expect(await refusal(asked, "POST", fork, { count: 1 }, { headers: relayed })).toMatchObject({
      code: "key_required",
    });
    const forked = await asked.call("POST", fork, { count: 1 }, { headers: { ...relayed, ...HEADER.headers } });
    expect(forked.status).toBe(201);
    const wrong = { headers: { ...relayed, ...OTHER_HEADER.headers } };
    expect(await refusal(asked, "POST", fork, { count: 1 }, wrong)).toMatchObject({ code: "key_required" });
    const asE2b = (headers: Record<string, string>) => asked.call("POST", `/e2b/sandboxes/${id}/fork`, {}, { headers });
    expect(await asE2b({})).toMatchObject({ body: { error_code: "key_required" } });
    expect(await asE2b(HEADER.headers)).toMatchObject({ status: 201 });
  });

  test("keeps its key on the server that was called", async () => {
    const calls: IncomingHttpHeaders[] = [];
    const recorder = createServer((request, response) => {
      calls.push(request.headers);
      response.writeHead(404).end("{}");
    });
    await new Promise<void>((resolve) => recorder.listen(0, "127.0.0.1", resolve));
    onTestFinished(() => void recorder.close());
    const advertiseUrl = `http://127.0.0.1:${(recorder.address() as AddressInfo).port}`;
    const { server, http } = await start({ advertiseUrl });
    const asked = new HttpClient(await startTestServer({ store: server.storeFolder ?? null }));
    const { id } = await create(http);
    const headers = { "sandboxer-relay": "allow", ...HEADER.headers };
    await asked.call("POST", `/v1/sandboxes/${id}/fork`, { count: 1 }, { headers });
    await asked.call("POST", `/e2b/sandboxes/${id}/fork`, {}, { headers: HEADER.headers });
    expect(calls.filter((each) => "sandboxer-encryption-proof" in each)).toHaveLength(2);
    expect(JSON.stringify(calls)).not.toContain(KEY);
  });

  test("leaves its key in no log, audit, event, operation or file of the store", async () => {
    const lines: string[] = [];
    const log = pino({ level: "trace" }, { write: (line: string) => void lines.push(line) });
    const { server, http } = await start({ access: { log } });
    const { id } = await create(http);
    await http.call("POST", `/v1/sandboxes/${id}/snapshot`, { name: "mine" }, HEADER);
    await http.call("POST", "/v1/snapshots/mine/restore", {}, OTHER_HEADER);
    await http.call("POST", `/v1/sandboxes/${id}/checkpoint`);
    const told = [
      lines,
      (await http.call<unknown>("GET", "/v1/operations?limit=100")).body,
      (await http.call<unknown>("GET", "/v1/events?limit=1000")).body,
      (await http.call<unknown>("GET", "/v1/sandboxes")).body,
    ];
    expect(lines.length).toBeGreaterThan(3);
    const bytes = Buffer.from(KEY, "base64");
    const forms = [
      KEY,
      bytes.toString("hex"),
      bytes.toString("base64url"),
      OTHER_HEADER.headers["sandboxer-encryption-key"],
    ];
    for (const form of forms) expect(JSON.stringify(told)).not.toContain(form);
    const stored = [...(await filesIn(server.storeFolder ?? ""))];
    expect(stored.filter(([, file]) => file.includes(bytes) || forms.some((form) => file.includes(form)))).toEqual([]);
  });

  test("is destroyed, and its key shredded, without it", async () => {
    const { server, http } = await start();
    const { id } = await create(http);
    await http.call("POST", `/v1/sandboxes/${id}/checkpoint`);
    const keysIn = async () =>
      [...(await filesIn(server.storeFolder ?? "")).keys()].filter((path) => path.endsWith(".key"));
    expect(await keysIn()).toHaveLength(1);
    expect((await http.call("DELETE", `/v1/sandboxes/${id}`)).status).toBe(200);
    await expect.poll(async () => await keysIn()).toEqual([]);
  });
});

describe("a sandbox that a key stands for", () => {
  const acquire = (http: HttpClient, options = {}) =>
    http.call<CreatedSandboxRecord & ErrorAnswer>("POST", "/v1/sandboxes/acquire", { key: "convo" }, options);

  test("is returned only to clients with its key", async () => {
    const { http } = await start();
    expect((await acquire(http)).status).toBeLessThan(300);
    expect((await acquire(http, HEADER)).body.error).toMatchObject({
      code: "wrong_key",
      details: { given: fingerprint },
    });
    const { http: other } = await start();
    const made = (await acquire(other, HEADER)).body;
    expect((await acquire(other, HEADER)).body).toMatchObject({ id: made.id, encryption: { key: fingerprint } });
    expect((await acquire(other, OTHER_HEADER)).body.error).toMatchObject({ code: "wrong_key" });
  });

  test("and that its provider has is saved under the key of the request", async () => {
    const backend = new FakeBackend({ capabilities: { snapshot: "none", outlivesServer: true } });
    const wrapBackend = (wrapped: FakeBackend): SandboxBackend =>
      new Proxy(wrapped, {
        get: (target, name) => {
          const value: unknown = name === "close" ? async () => {} : Reflect.get(target, name, target);
          return typeof value === "function" ? (value.bind(target) as unknown) : value;
        },
      });
    vi.spyOn(backend, "tryResume").mockImplementationOnce((request) =>
      backend.acquire({ ...request, sandboxId: randomUUID() }),
    );
    const dataFolder = await temporaryFolder();
    const { server, http } = await start({ backend, wrapBackend, dataFolder });
    const { id, encryption, ...more } = (await acquire(http, HEADER)).body;
    expect(more).toMatchObject({ tier: "reattached" });
    expect(encryption).toEqual({ held_by: "client", key: fingerprint });
    const taken = await http.call<SnapshotInfo>("POST", `/v1/sandboxes/${id}/snapshot`, { mode: "workspace" });
    expect(taken.body.encryption).toEqual({ held_by: "client", key: fingerprint });
    expect(await plainImages(server)).toEqual([]);
    // The next server has the record and not the key, until somebody shows it.
    await server.manager.drain();
    const next = await start({ store: server.storeFolder ?? null, backend, wrapBackend, dataFolder });
    expect((await next.http.call("POST", `/v1/sandboxes/${id}/resume`)).status).toBe(200);
    const snapshot = `/v1/sandboxes/${id}/snapshot`;
    expect(await refusal(next.http, "POST", snapshot, { mode: "workspace" })).toMatchObject({ code: "key_required" });
    expect((await next.http.call("POST", `/v1/sandboxes/${id}/resume`, undefined, HEADER)).status).toBe(200);
    expect((await next.http.call("POST", snapshot, { mode: "workspace" })).status).toBe(201);
    expect(await plainImages(server)).toEqual([]);
  });
});

test("an invalid key is refused, and not repeated in the error", async () => {
  const { http } = await start();
  const sent = "not-a-key-but-perhaps-a-password";
  const headers = { "sandboxer-encryption-key": sent };
  const refused = await refusal(http, "POST", "/v1/sandboxes", {}, { headers });
  expect(refused).toMatchObject({ status: 400, code: "bad_request" });
  expect(JSON.stringify(refused)).not.toContain(sent);
});
