import { mkdtemp, rm } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import type { EventRecord, OperationRecordBody, SnapshotInfo } from "@sandboxer/protocol";
import { describe, expect, onTestFinished, test } from "vitest";
import { FakeBackend } from "../../../src/backends/fake/index.ts";
import {
  startTestServer,
  type TestServer,
  type TestServerOptions,
} from "../../../../../test/kit/server/test-server.ts";
import { SandboxClient } from "./processes/support.ts";
import { SnapshotClient } from "./snapshot-client.ts";

const NEVER = { "sandboxer-relay": "never" };

const client = async (options?: TestServerOptions) => new SnapshotClient(await startTestServer(options));

async function events(api: SnapshotClient<TestServer>, type: string): Promise<EventRecord[]> {
  return (await api.call<{ items: EventRecord[] }>("GET", `/v1/events?type=${type}`)).body.items;
}

/** A paused sandbox with a file. */
async function stored(api: SnapshotClient<TestServer>, body: object = {}): Promise<SandboxClient> {
  const box = await SandboxClient.create(api.server, body);
  await box.exec({ shell: "echo kept > file" });
  await box.call("POST", "/checkpoint");
  return box;
}

describe("the capture of a sandbox that nobody runs", () => {
  test("it is resumed here first, and the response says so", async () => {
    const api = await client();
    const box = await stored(api);
    const snapshot = await api.take(box.id, { name: "asleep" });
    expect(snapshot).toMatchObject({ sandbox_id: box.id, state: "ready", mode: "full" });
    expect((await api.http.get(box.id)).state).toBe("running");
    const copy = api.sandbox((await api.restore("asleep")).id);
    expect((await copy.exec({ shell: "cat file" })).stdout).toBe("kept\n");
    const { items } = (await api.call<{ items: OperationRecordBody[] }>("GET", "/v1/operations?kind=snapshot")).body;
    expect(Object.keys(items[0]?.phases ?? {})).toEqual(["resume", "files", "save", "pack"]);
    const told = await events(api, "sandbox.resumed");
    expect(told.map(({ sandbox_id, data }) => [sandbox_id, data])).toEqual([[box.id, { for: "snapshot" }]]);
  });

  test("a running sandbox is captured directly", async () => {
    const api = await client();
    const box = await SandboxClient.create(api.server);
    await api.take(box.id);
    expect(await events(api, "sandbox.resumed")).toEqual([]);
  });

  test("several calls at once resume it once, and all are served", async () => {
    const api = await client();
    const box = await stored(api);
    const taken = await Promise.all([api.take(box.id), api.take(box.id), api.take(box.id)]);
    expect(new Set(taken.map(({ id }) => id)).size).toBe(3);
    const restores = await api.call<{ items: OperationRecordBody[] }>("GET", "/v1/operations?kind=resume");
    expect(restores.body.items).toHaveLength(1);
  });

  test("the next server on the store does it too", async () => {
    const first = await client();
    const box = await stored(first);
    await first.server.manager.drain();
    const next = await client({ store: first.server.storeFolder ?? null });
    const { id } = await next.take(box.id);
    const copy = next.sandbox((await next.restore(id)).id);
    expect((await copy.exec({ shell: "cat file" })).stdout).toBe("kept\n");
  });

  test("a sandbox of another server is captured there; unrelayed it is 409 with its address, and it stays", async () => {
    const one = await client();
    const two = await client({ store: one.server.storeFolder ?? null });
    const box = await SandboxClient.create(one.server);
    const refused = await two.call("POST", `/v1/sandboxes/${box.id}/snapshot`, {}, NEVER);
    expect([refused.status, refused.body.error.code]).toEqual([409, "lease_held"]);
    expect(refused.body.error.details).toMatchObject({ state: "running", url: one.server.httpUrl });
    expect((await one.http.get(box.id)).owner?.here).toBe(true);
  });

  test("a sandbox that cannot be captured is not resumed for it", async () => {
    const api = await client({ backend: new FakeBackend({ capabilities: { filesystemSnapshot: false } }) });
    const box = await stored(api);
    const path = `/v1/sandboxes/${box.id}/snapshot`;
    expect(await api.refused("POST", path, { mode: "filesystem" })).toEqual([422, "not_supported"]);
    expect((await api.http.get(box.id)).state).toBe("stored");
  });

  test("an expired or deleted sandbox stays unchanged", async () => {
    const api = await client();
    const box = await SandboxClient.create(api.server, { ttl: "1s" });
    await expect.poll(async () => (await api.http.get(box.id)).state).toBe("stored");
    const refused = await box.call("POST", "/snapshot", {});
    expect([refused.status, refused.body.error.details["state"]]).toEqual([409, "stored"]);
    await api.call("DELETE", `/v1/sandboxes/${box.id}`);
    const gone = await box.call("POST", "/snapshot", {});
    expect([gone.status, gone.body.error.code]).toEqual([410, "sandbox_destroyed"]);
  });

  test("an outdated epoch resumes nothing", async () => {
    const api = await client();
    const box = await stored(api);
    const stale = await box.call("POST", "/snapshot", {}, { "if-sandbox-epoch": "99" });
    expect([stale.status, stale.body.error.code]).toEqual([412, "stale_epoch"]);
    expect((await api.http.get(box.id)).state).toBe("stored");
  });
});

describe("of one that its provider keeps", () => {
  async function serve(backend: FakeBackend, dataFolder: string): Promise<SnapshotClient<TestServer>> {
    const wrapBackend = (wrapped: FakeBackend) =>
      new Proxy(wrapped, {
        get: (target, name) => {
          const value: unknown = name === "close" ? async () => {} : Reflect.get(target, name, target);
          return typeof value === "function" ? (value.bind(target) as unknown) : value;
        },
      });
    return client({ backend, wrapBackend, store: join(dataFolder, "store") });
  }

  async function provider(): Promise<() => Promise<SnapshotClient<TestServer>>> {
    const folder = await mkdtemp(join(tmpdir(), "sandboxer-asleep-"));
    onTestFinished(() => rm(folder, { recursive: true, force: true }));
    const backend = new FakeBackend({ capabilities: { snapshot: "filesystem", outlivesServer: true } });
    return () => serve(backend, folder);
  }

  test("it is started again and captured", async () => {
    const next = await provider();
    const first = await next();
    const box = await SandboxClient.create(first.server);
    await box.exec({ shell: "echo kept > file" });
    await first.server.manager.drain();
    const second = await next();
    const { id } = await second.take(box.id);
    expect((await second.http.get(box.id)).state).toBe("running");
    const files = (await second.call<{ items: SnapshotInfo[] }>("GET", "/v1/snapshots")).body.items;
    expect(files.map((each) => each.id)).toEqual([id]);
  });

  test("while another server runs it, this one names that server", async () => {
    const next = await provider();
    const [one, two] = [await next(), await next()];
    const box = await SandboxClient.create(one.server);
    const refused = await two.call("POST", `/v1/sandboxes/${box.id}/snapshot`, {}, NEVER);
    expect([refused.status, refused.body.error.code]).toEqual([409, "lease_held"]);
    expect(refused.body.error.details["url"]).toBe(one.server.httpUrl);
  });
});
