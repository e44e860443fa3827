import { randomBytes, randomUUID } from "node:crypto";
import type { CreatedSandboxRecord, SandboxRecord, SnapshotInfo } from "@sandboxer/protocol";
import { pino } from "pino";
import { describe, expect, test, vi } from "vitest";
import type { SandboxBackend } from "../../src/backends/backend.ts";
import { FakeBackend } from "../../src/backends/fake/index.ts";
import { MasterKey } from "../../src/checkpoints/keys/master-key.ts";
import { rotateDataKeys } from "../../src/checkpoints/keys/rotate-data-keys.ts";
import { DirectoryStore } from "../../src/store/directory/directory-store.ts";
import { KeyFile } from "../../src/gateway/access/key-file.ts";
import { filesIn, newKey, serverKeys } from "../checkpoints/keys/key-lab.ts";
import { temporaryFolder } from "../store/temporary-folder.ts";
import { startTestServer, type TestServer, type TestServerOptions } from "../websocket/support/test-server.ts";
import { type ErrorAnswer, HttpClient } from "./support.ts";

const KEY = randomBytes(32).toString("base64");
const { fingerprint } = MasterKey.parse(KEY) ?? newKey();
const HEADER = { headers: { "Sandboxer-Encryption-Key": KEY } };
const OTHER_HEADER = { headers: { "sandboxer-encryption-key": randomBytes(32).toString("hex") } };
const MARK = "a word that is found again";

async function start(options: TestServerOptions = {}) {
  const server = await startTestServer(options);
  return { server, http: new HttpClient(server) };
}

async function create(http: HttpClient, options = HEADER): Promise<CreatedSandboxRecord> {
  const answer = await http.call<CreatedSandboxRecord>("POST", "/v1/sandboxes", {}, options);
  expect(answer.status).toBe(201);
  return answer.body;
}

async function write(server: TestServer, id: string): Promise<void> {
  const { handle } = await server.manager.running(id);
  await handle.files.write("/workspace/mark.txt", Buffer.from(MARK));
}

async function read(server: TestServer, id: string): Promise<string> {
  const { handle } = await server.manager.running(id);
  const chunks: Uint8Array[] = [];
  for await (const chunk of handle.files.read("/workspace/mark.txt")) chunks.push(chunk);
  return Buffer.concat(chunks).toString();
}

/** The images of a server's store that are not encrypted. */
async function plainImages({ storeFolder }: TestServer): Promise<readonly string[]> {
  const images = [...(await filesIn(storeFolder ?? ""))].filter(([path]) => path.endsWith(".img"));
  expect(images).not.toEqual([]);
  return images.filter(([, bytes]) => !bytes.includes('"encryption":{"key_id"')).map(([path]) => path);
}

async function refusal(http: HttpClient, method: string, path: string, body?: unknown, options = {}) {
  const answer = await http.call<ErrorAnswer>(method, path, body, options);
  return { status: answer.status, ...answer.body.error };
}

describe("a sandbox under its client's key", () => {
  test("is saved and restored with it, and nobody restores it without", async () => {
    const { server, http } = await start();
    const { id, encryption } = await create(http);
    expect(encryption).toEqual({ held_by: "client", key: fingerprint });
    await write(server, id);
    // What the server saves by itself it saves with the key that it keeps for as long as the sandbox is here.
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

  test("keeps its key to itself: forks, snapshots and what is made of them need it too", async () => {
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

  test("does not become part of one that the server can read", async () => {
    const { http } = await start();
    const { id } = await create(http);
    await http.call("POST", `/v1/sandboxes/${id}/snapshot`, { name: "mine" });
    const other = await http.create();
    const rewind = `/v1/sandboxes/${other.id}/rewind`;
    expect(await refusal(http, "POST", rewind, { snapshot_id: "mine" }, HEADER)).toMatchObject({
      code: "not_supported",
    });
  });

  test("is attached with it over WebSocket, and says without it what is missing", async () => {
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

  test("goes to another server with its key, and stays where it is without", async () => {
    const { server, http } = await start();
    const two = await startTestServer({ store: server.storeFolder ?? null });
    const { id } = await create(http);
    await write(server, id);
    const handoff = `/v1/sandboxes/${id}/handoff`;
    expect(await refusal(http, "POST", handoff, { to: two.httpUrl })).toMatchObject({ code: "key_required" });
    const there = new HttpClient(two);
    expect(await refusal(there, "POST", `/v1/sandboxes/${id}/resume`)).toMatchObject({ code: "key_required" });
    expect(await http.get(id)).toMatchObject({ state: "running", epoch: 1, owner: { here: true } });
    expect((await http.call("POST", handoff, { to: two.httpUrl }, HEADER)).status).toBe(200);
    expect(await read(two, id)).toBe(MARK);
  });

  test("is worked with through a server that has it not, which passes the key on", async () => {
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
    expect((await http.call("DELETE", `/v1/sandboxes/${id}`)).status).toBe(204);
    await vi.waitFor(async () => expect(await keysIn()).toEqual([]));
  });
});

describe("a sandbox that a key stands for", () => {
  const acquire = (http: HttpClient, options = {}) =>
    http.call<CreatedSandboxRecord & ErrorAnswer>("POST", "/v1/sandboxes/acquire", { key: "convo" }, options);

  test("is not given to who wants it under a key of theirs, when it is not", async () => {
    const { http } = await start();
    expect((await acquire(http)).status).toBeLessThan(300);
    expect((await acquire(http, HEADER)).body.error).toMatchObject({ code: "not_supported", details: { fingerprint } });
    const { http: other } = await start();
    const made = (await acquire(other, HEADER)).body;
    expect((await acquire(other, HEADER)).body).toMatchObject({ id: made.id, encryption: { key: fingerprint } });
    expect((await acquire(other, OTHER_HEADER)).body.error).toMatchObject({ code: "wrong_key" });
  });

  test("and that its provider has is saved under the key of who asks for it", async () => {
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

test("a key that is none is refused, and not repeated", async () => {
  const { http } = await start();
  const sent = "not-a-key-but-perhaps-a-password";
  const headers = { "sandboxer-encryption-key": sent };
  const refused = await refusal(http, "POST", "/v1/sandboxes", {}, { headers });
  expect(refused).toMatchObject({ status: 400, code: "bad_request" });
  expect(JSON.stringify(refused)).not.toContain(sent);
});

describe("a server's key", () => {
  test("encrypts what does not say, for every server that has it; one that has it not takes nothing", async () => {
    const keys = new Map([["main", newKey()]]);
    const { server, http } = await start({ masterKeys: serverKeys(keys, "main") });
    const store = server.storeFolder ?? null;
    const same = await startTestServer({ store, masterKeys: serverKeys(keys, "main") });
    const without = await startTestServer({ store });
    const wrong = await startTestServer({ store, masterKeys: serverKeys(new Map([["main", newKey()]]), "main") });
    const { id, encryption } = await http.create();
    expect(encryption).toEqual({ held_by: "server", key: "main" });
    await write(server, id);
    await http.call("POST", `/v1/sandboxes/${id}/checkpoint`, { leave_running: true });
    const resume = `/v1/sandboxes/${id}/resume`;
    expect(await refusal(new HttpClient(without), "POST", resume)).toMatchObject({ code: "key_unavailable" });
    expect(await refusal(new HttpClient(wrong), "POST", resume)).toMatchObject({ code: "wrong_key" });
    expect(await http.get(id)).toMatchObject({ state: "running", epoch: 1, owner: { here: true } });
    expect((await new HttpClient(same).get(id)).encryption).toEqual({ held_by: "server", key: "main" });
    // The name is the server's, and not the sandbox's.
    expect((await new HttpClient(without).get(id)).encryption).toBeNull();
    expect((await new HttpClient(same).call("POST", resume)).status).toBe(200);
    expect(await read(same, id)).toBe(MARK);
    expect(await plainImages(server)).toEqual([]);
  });

  /** A saved sandbox and a snapshot of it under the key "old", and then a rotation to "new". */
  async function rotated(options: TestServerOptions, asked = {}) {
    const keys = new Map([
      ["old", newKey()],
      ["new", newKey()],
    ]);
    const { server, http } = await start({
      ...options,
      masterKeys: serverKeys(keys, options.access ? undefined : "old"),
    });
    const { id } = await create(http, asked as never);
    await write(server, id);
    expect((await http.call("POST", `/v1/sandboxes/${id}/snapshot`, { name: "base" }, asked)).status).toBe(201);
    expect((await http.call("POST", `/v1/sandboxes/${id}/checkpoint`, undefined, asked)).status).toBe(200);
    const store = await DirectoryStore.open(server.storeFolder ?? "");
    const rotation = await rotateDataKeys(store, serverKeys(keys, "new", ["old"]), { apply: true });
    expect(rotation).toMatchObject({ rewrapped: 1, failed: [] });
    return { id, keys, store: server.storeFolder ?? null };
  }

  async function worksOn({ id, keys, store }: Awaited<ReturnType<typeof rotated>>, isOldKnown: boolean) {
    const { fingerprint: present } = keys.get("new") ?? newKey();
    if (!isOldKnown) keys.delete("old");
    const { server, http } = await start({ store, masterKeys: serverKeys(keys, "new") });
    expect((await http.call("POST", `/v1/sandboxes/${id}/resume`)).status).toBe(200);
    expect(await read(server, id)).toBe(MARK);
    expect((await http.get(id)).encryption).toEqual({ held_by: "server", key: "new" });
    expect((await http.call("POST", `/v1/sandboxes/${id}/checkpoint`)).status).toBe(200);
    const restored = await http.call<CreatedSandboxRecord>("POST", "/v1/snapshots/base/restore", {});
    expect(restored.status).toBe(201);
    expect(await read(server, restored.body.id)).toBe(MARK);
    expect((await http.call("POST", `/v1/sandboxes/${restored.body.id}/checkpoint`)).status).toBe(200);
    const fresh = await http.create();
    expect((await http.call("POST", `/v1/sandboxes/${fresh.id}/rewind`, { snapshot_id: "base" })).status).toBe(200);
    const wrapped = [...(await filesIn(store ?? "")).keys()].filter((path) => path.endsWith(".key"));
    expect(wrapped.filter((path) => !path.includes(`/${present}.`))).toEqual([]);
    expect(await plainImages(server)).toEqual([]);
  }

  test.each([false, true])(
    "is changed for another one, and nothing goes on under the old (known: %s)",
    async (known) => {
      await worksOn(await rotated({}), known);
    },
  );

  test.each([false, true])("is changed too where records have its old name (known: %s)", async (known) => {
    // As earlier servers wrote them.
    const file = new KeyFile(await temporaryFolder());
    const { text } = await file.create({ name: "a", scope: "admin", encryptionKey: "old" });
    const asked = { headers: { authorization: `Bearer ${text}` } };
    await worksOn(await rotated({ access: { keyFile: file.path } }, asked), known);
  });

  test("of a server before stays on one that has the secret and no key of its own", async () => {
    const keys = new Map([["main", newKey()]]);
    const { server, http } = await start({ masterKeys: serverKeys(keys, "main") });
    const { id } = await http.create();
    await write(server, id);
    await http.call("POST", `/v1/sandboxes/${id}/checkpoint`);
    const without = await startTestServer({ store: server.storeFolder ?? null, masterKeys: serverKeys(keys) });
    const there = new HttpClient(without);
    expect((await there.call("POST", `/v1/sandboxes/${id}/resume`)).status).toBe(200);
    expect((await there.call("POST", `/v1/sandboxes/${id}/checkpoint`)).status).toBe(200);
    expect(await plainImages(server)).toEqual([]);
  });

  test("that cannot be had makes no sandbox, and says which", async () => {
    const { http } = await start({ masterKeys: serverKeys(new Map(), "main") });
    const refused = await refusal(http, "POST", "/v1/sandboxes", {});
    expect(refused).toMatchObject({ status: 503, code: "key_unavailable" });
    expect(refused.message).toContain('"main"');
  });

  test("of an API key is that of all that it makes, and of what is made of that", async () => {
    const keys = new Map([
      ["main", newKey()],
      ["tenant-a", newKey()],
    ]);
    const folder = await temporaryFolder();
    const file = new KeyFile(folder);
    const tenant = await file.create({ name: "a", scope: "admin", encryptionKey: "tenant-a" });
    const other = await file.create({ name: "b", scope: "admin" });
    const access = { keyFile: file.path };
    const { http } = await start({ masterKeys: serverKeys(keys, "main"), access });
    const asTenant = { headers: { authorization: `Bearer ${tenant.text}` } };
    const asOther = { headers: { authorization: `Bearer ${other.text}` } };
    const made = await create(http, asTenant as never);
    expect(made.encryption).toEqual({ held_by: "server", key: "tenant-a" });
    expect((await create(http, asOther as never)).encryption?.key).toBe("main");
    await http.call("POST", `/v1/sandboxes/${made.id}/snapshot`, { name: "base" }, asTenant);
    const restored = await http.call<CreatedSandboxRecord>("POST", "/v1/snapshots/base/restore", {}, asOther);
    expect(restored.body.encryption?.key).toBe("tenant-a");
    const others = await create(http, asOther as never);
    const rewind = `/v1/sandboxes/${others.id}/rewind`;
    expect(await refusal(http, "POST", rewind, { snapshot_id: "base" }, asOther)).toMatchObject({
      code: "not_supported",
      details: { key: "tenant-a" },
    });
    const back = `/v1/sandboxes/${made.id}/rewind`;
    expect((await http.call("POST", back, { snapshot_id: "base" }, asTenant)).status).toBe(200);
    const shown = await create(http, { headers: { ...asTenant.headers, ...HEADER.headers } });
    expect(shown.encryption).toEqual({ held_by: "client", key: fingerprint });
  });
});
