import type { CreatedSandboxRecord } from "@sandboxer/protocol";
import { describe, expect, test } from "vitest";
import { rotateDataKeys } from "../../../src/checkpoints/keys/rotate-data-keys.ts";
import { DirectoryStore } from "../../../src/store/directory/directory-store.ts";
import { KeyFile } from "../../../src/gateway/access/key-file.ts";
import { filesIn, newKey, serverKeys } from "../../checkpoints/keys/key-lab.ts";
import { temporaryFolder } from "../../../../../test/kit/temporary-folder.ts";
import { startTestServer, type TestServerOptions } from "../../../../../test/kit/server/test-server.ts";
import { fingerprint, HEADER, MARK, start, create, write, read, plainImages, refusal } from "./encryption-lab.ts";
import { HttpClient } from "./support.ts";

describe("a server's key", () => {
  test("encrypts by default, for every server that has it; a server without it claims nothing", async () => {
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

  async function expectToWorkOn({ id, keys, store }: Awaited<ReturnType<typeof rotated>>, isOldKnown: boolean) {
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

  test.each([false, true])("is changed for another one, and nothing stays under the old (known: %s)", async (known) => {
    await expectToWorkOn(await rotated({}), known);
  });

  test.each([false, true])("is changed too where records have its old name (known: %s)", async (known) => {
    // As earlier servers wrote them.
    const file = new KeyFile(await temporaryFolder());
    const { text } = await file.create({ name: "a", scope: "admin", encryptionKey: "old" });
    const asked = { headers: { authorization: `Bearer ${text}` } };
    await expectToWorkOn(await rotated({ access: { keyFile: file.path } }, asked), known);
  });

  test("of an earlier server stays in use on one that has it as an old key and no key of its own", async () => {
    const keys = new Map([["main", newKey()]]);
    const { server, http } = await start({ masterKeys: serverKeys(keys, "main") });
    const { id } = await http.create();
    await write(server, id);
    await http.call("POST", `/v1/sandboxes/${id}/checkpoint`);
    const without = await startTestServer({
      store: server.storeFolder ?? null,
      masterKeys: serverKeys(keys, undefined, ["main"]),
    });
    const there = new HttpClient(without);
    expect((await there.call("POST", `/v1/sandboxes/${id}/resume`)).status).toBe(200);
    expect((await there.call("POST", `/v1/sandboxes/${id}/checkpoint`)).status).toBe(200);
    expect(await plainImages(server)).toEqual([]);
  });

  test("that is unavailable creates no sandbox, and is named", async () => {
    const { http } = await start({ masterKeys: serverKeys(new Map(), "main") });
    const refused = await refusal(http, "POST", "/v1/sandboxes", {});
    expect(refused).toMatchObject({ status: 503, code: "key_unavailable" });
    expect(refused.message).toContain('"main"');
  });

  test("of an API key applies to all its sandboxes, and to everything created from them", async () => {
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
