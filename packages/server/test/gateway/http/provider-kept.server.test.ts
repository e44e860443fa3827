import { randomUUID } from "node:crypto";
import { mkdtemp, rm } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { SandboxerError, type SandboxRecord } from "@sandboxer/protocol";
import { expect, onTestFinished, test, vi } from "vitest";
import type { SandboxBackend } from "../../../src/backends/backend.ts";
import { FakeBackend } from "../../../src/backends/fake/index.ts";
import { openStore } from "../../../src/store/open-store.ts";
import { REMOVAL } from "../../../../../test/kit/temporary-folder.ts";
import { startTestServer, type TestServer } from "../../../../../test/kit/server/test-server.ts";
import { SandboxClient } from "./processes/support.ts";
import { HttpClient, type ErrorAnswer } from "./support.ts";

const KEEPS = { snapshot: "none", outlivesServer: true } as const;

interface Provider {
  readonly backend: FakeBackend;
  /** A server over this provider, or over another one with the same records. */
  readonly serve: (other?: FakeBackend) => Promise<TestServer>;
  readonly folder: string;
}

/** A provider that keeps its sandboxes when servers come and go. */
async function startProvider(): Promise<Provider> {
  const folder = await mkdtemp(join(tmpdir(), "sandboxer-outliving-"));
  onTestFinished(() => rm(folder, REMOVAL));
  const backend = new FakeBackend({ capabilities: KEEPS });
  // The end of a server is not the end of its provider.
  const wrapBackend = (wrapped: FakeBackend): SandboxBackend =>
    new Proxy(wrapped, {
      get: (target, name) => {
        const value: unknown = name === "close" ? async () => {} : Reflect.get(target, name, target);
        return typeof value === "function" ? (value.bind(target) as unknown) : value;
      },
    });
  const serve: Provider["serve"] = (other = backend) =>
    startTestServer({ store: null, backend: other, wrapBackend, dataFolder: folder });
  return { backend, serve, folder };
}

async function files(server: TestServer, id: string) {
  return (await server.live(id)).handle.files;
}

test("a provider-kept sandbox is stopped with its server, and resumed by the next", async () => {
  const { serve, folder } = await startProvider();
  const first = await serve();
  const { id, token } = await new HttpClient(first).create({ name: "kept", labels: { a: "1" } });
  await (await files(first, id)).write("/workspace/mark", Buffer.from("x"));
  await first.manager.drain();
  const registry = await openStore(join(folder, "registry"));
  const cell = await registry.readCell(`${id}/metadata.json`);
  const head = JSON.parse(Buffer.from(cell?.body ?? []).toString()) as object;
  expect(head).toMatchObject({ owner: null, residence: "provider", stopped_at: expect.any(String) });

  const second = await serve();
  const http = new HttpClient(second);
  expect(await http.get(id)).toMatchObject({ name: "kept", labels: { a: "1" }, state: "stored" });
  const asleep = await http.call<ErrorAnswer>("GET", `/v1/sandboxes/${id}/stats`);
  expect([asleep.status, asleep.body.error.details["state"]]).toEqual([409, "stored"]);
  expect((await http.call<SandboxRecord>("POST", `/v1/sandboxes/${id}/resume`)).body.state).toBe("running");
  expect((await (await files(second, id)).stat("/workspace/mark")).sizeBytes).toBe(1);
  const stranger = second.attach(id, "?sandbox_token=00");
  await stranger.until("PERMISSION_DENIAL_ERROR");
  await second.attach(id, `?sandbox_token=${token}`).until("RUNNING");
});

test("it is deleted at its provider, even by a server that has not resumed it", async () => {
  const { serve, backend } = await startProvider();
  const first = await serve();
  const { id } = await new HttpClient(first).create();
  await first.manager.drain();
  const http = new HttpClient(await serve());
  expect((await http.call("DELETE", `/v1/sandboxes/${id}`)).status).toBe(200);
  expect(backend.runningCount).toBe(0);
  expect((await http.get(id)).state).toBe("destroyed");
  expect((await http.call<{ items: unknown[] }>("GET", "/v1/sandboxes")).body.items).toEqual([]);
});

test("a sandbox that its provider has lost is reported, and its record can be removed", async () => {
  const { serve } = await startProvider();
  const first = await serve();
  const { id } = await new HttpClient(first).create();
  await first.manager.drain();
  const next = new HttpClient(await serve(new FakeBackend({ capabilities: KEEPS })));
  const lost = await next.call<ErrorAnswer>("POST", `/v1/sandboxes/${id}/resume`);
  expect([lost.status, lost.body.error.code]).toEqual([500, "sandbox_failed"]);
  expect((await next.get(id)).state).toBe("stored");
  expect((await next.call("DELETE", `/v1/sandboxes/${id}`)).status).toBe(200);
  expect((await next.get(id)).state).toBe("destroyed");
});

test("while it is in use on one server no other gets it, and a DELETE elsewhere does not orphan it", async () => {
  const { serve, backend } = await startProvider();
  const [one, two] = [await serve(), await serve()];
  const [a, b] = [new HttpClient(one), new HttpClient(two)];
  const { id, token } = await a.create();
  const client = one.attach(id, `?sandbox_token=${token}`);
  await client.until("RUNNING");
  expect(await b.get(id)).toMatchObject({ state: "running", epoch: 1, owner: { url: one.httpUrl, here: false } });
  for (const [method, path] of [
    ["POST", "/resume"],
    ["DELETE", ""],
  ] as const) {
    const refused = await b.call<ErrorAnswer>(method, `/v1/sandboxes/${id}${path}`);
    expect([refused.status, refused.body.error.code]).toEqual([409, "lease_held"]);
    expect(refused.body.error.details["url"]).toBe(one.httpUrl);
  }
  expect((await a.call("DELETE", `/v1/sandboxes/${id}`)).status).toBe(200);
  expect((await b.get(id)).state).toBe("destroyed");
  expect(backend.runningCount).toBe(0);
});

test("an unused sandbox is handed off to the server that requests it, and keeps running meanwhile", async () => {
  const { serve, backend } = await startProvider();
  const [one, two] = [await serve(), await serve()];
  const box = await SandboxClient.create(one);
  await (await files(one, box.id)).write("/workspace/mark", Buffer.from("x"));
  const stopped = vi.spyOn((await one.live(box.id)).handle, "stop");
  const resumed = await new HttpClient(two).call<SandboxRecord>("POST", `/v1/sandboxes/${box.id}/resume`);
  expect([resumed.status, resumed.body.state, resumed.body.epoch]).toEqual([200, "running", 2]);
  expect((await (await files(two, box.id)).stat("/workspace/mark")).sizeBytes).toBe(1);
  expect(stopped).not.toHaveBeenCalled();
  expect(backend.runningCount).toBe(1);
  expect(one.manager.states()).toEqual({});
  expect(await new HttpClient(one).get(box.id)).toMatchObject({ state: "running", owner: { url: two.httpUrl } });
});

test("the next server takes it from a server that counts as dead; the old one releases it when it finds out", async () => {
  const { serve, backend } = await startProvider();
  const [one, two] = [await serve(), await serve()];
  const box = await SandboxClient.create(one);
  await two.instances.markDead(one.instances.instanceId);
  const taken = await new HttpClient(two).call<SandboxRecord>("POST", `/v1/sandboxes/${box.id}/resume`);
  expect(taken.body).toMatchObject({ state: "running", epoch: 2 });
  const removed = vi.spyOn((await two.live(box.id)).handle, "destroy");
  // It finds out as soon as it changes anything.
  await new HttpClient(one).call("PATCH", `/v1/sandboxes/${box.id}`, { name: "mine" });
  await expect.poll(() => one.manager.states()).toEqual({});
  expect(await new HttpClient(two).get(box.id)).toMatchObject({ state: "running", name: null });
  expect(backend.runningCount).toBe(1);
  expect(removed).not.toHaveBeenCalled();
  await (await files(two, box.id)).write("/workspace/mark", Buffer.from("x"));
});

test("one of two servers that resume it at once gets it", async () => {
  const { serve, backend } = await startProvider();
  const first = await serve();
  const { id } = await new HttpClient(first).create();
  await first.manager.drain();
  const servers = [await serve(), await serve()];
  const wake = (server: TestServer) => new HttpClient(server).call<ErrorAnswer>("POST", `/v1/sandboxes/${id}/resume`);
  const answers = await Promise.all(servers.map(wake));
  expect(answers.map(({ status }) => status)).toContain(200);
  await expect.poll(() => servers.map((server) => server.manager.states()["running"] ?? 0).toSorted()).toEqual([0, 1]);
  expect(backend.runningCount).toBe(1);
});

test("its key is reserved while it is created, and free again if the creation fails", async () => {
  const { serve, backend } = await startProvider();
  const [one, two] = [await serve(), await serve()];
  const acquire = (server: TestServer) =>
    new HttpClient(server).call<ErrorAnswer & { tier: string }>("POST", "/v1/sandboxes/acquire", { key: "k" });
  const [made, begun] = [Promise.withResolvers<void>(), Promise.withResolvers<void>()];
  vi.spyOn(backend, "acquire").mockImplementationOnce(async () => {
    begun.resolve();
    await made.promise;
    throw new SandboxerError("backend_unavailable", "there is none");
  });
  const first = acquire(one);
  await begun.promise;
  const second = await acquire(two);
  expect([second.status, second.body.error?.details["url"]]).toEqual([409, one.httpUrl]);
  made.resolve();
  expect((await first).body.error.code).toBe("backend_unavailable");
  expect(await acquire(two)).toMatchObject({ status: 200, body: { tier: "fresh" } });
});

test("two servers without a store return the same sandbox for a new key requested at once", async () => {
  const { serve, backend } = await startProvider();
  const servers = [await serve(), await serve()];
  const acquire = (server: TestServer) =>
    new HttpClient(server).call<SandboxRecord>("POST", "/v1/sandboxes/acquire", { key: "k" });
  // Both have looked, and found nothing.
  const both = Promise.withResolvers<void>();
  let looks = 0;
  const look = async (): Promise<undefined> => {
    if (++looks === 2) both.resolve();
    await both.promise;
  };
  vi.spyOn(backend, "tryResume").mockImplementationOnce(look).mockImplementationOnce(look);
  const answers = await Promise.all(servers.map(acquire));
  expect(answers.map(({ status }) => status)).toEqual([200, 200]);
  expect(new Set(answers.map(({ body }) => body.id)).size).toBe(1);
  expect(backend.runningCount).toBe(1);
});

test("a recorded sandbox with a key is found at its provider by its id, whichever installation created it", async () => {
  const { serve, backend } = await startProvider();
  const first = await serve();
  const { id } = await new HttpClient(first).create({ key: "k" });
  await first.manager.drain();
  const asked = vi.spyOn(backend, "tryResume");
  const acquired = await new HttpClient(await serve()).call<SandboxRecord & { tier: string }>(
    "POST",
    "/v1/sandboxes/acquire",
    { key: "k" },
  );
  expect(acquired.body).toMatchObject({ id, tier: "reattached" });
  expect(asked.mock.calls.map(([request]) => [request.sandboxId, request.identity])).toEqual([[id, undefined]]);
});

test("a change is made by the server that runs it, or refused: that server would never know", async () => {
  const { serve } = await startProvider();
  const [one, two] = [await serve(), await serve()];
  const { id } = await new HttpClient(one).create({ name: "first" });
  const there = new HttpClient(two);
  const [path, alone] = [`/v1/sandboxes/${id}`, { headers: { "sandboxer-relay": "never" } }];
  const refused = await there.call<ErrorAnswer>("PATCH", path, { name: "second" }, alone);
  expect([refused.status, refused.body.error.details["url"]]).toEqual([409, one.httpUrl]);
  expect((await there.get(id)).name).toBe("first");
  expect((await there.call("PATCH", path, { name: "second" })).status).toBe(200);
  expect((await new HttpClient(one).get(id)).name).toBe("second");
});

test("its name, its labels and its lifetime can be changed, running or stopped", async () => {
  const { serve } = await startProvider();
  const first = await serve();
  const http = new HttpClient(first);
  const { id } = await http.create();
  await http.call("PATCH", `/v1/sandboxes/${id}`, { name: "one", labels: { a: "1" } });
  await first.manager.drain();
  const next = new HttpClient(await serve());
  expect(await next.get(id)).toMatchObject({ name: "one", labels: { a: "1" }, state: "stored" });
  expect((await next.call("PATCH", `/v1/sandboxes/${id}`, { name: "two" })).status).toBe(200);
  expect((await next.get(id)).name).toBe("two");
});

test("an expired sandbox is deleted by expire, and not resumed before", async () => {
  const { serve, backend } = await startProvider();
  const server = await serve();
  const http = new HttpClient(server);
  const { id } = await http.create({ ttl: "1s" });
  await expect.poll(async () => (await http.get(id)).state).toBe("stored");
  const woken = await http.call<ErrorAnswer>("POST", `/v1/sandboxes/${id}/resume`);
  expect([woken.status, woken.body.error.hint]).toEqual([409, expect.stringContaining("extend-ttl")]);
  const expired = await http.call<{ items: { id: string }[] }>("POST", "/v1/sandboxes/expire?apply=true");
  expect(expired.body.items.map((item) => item.id)).toEqual([id]);
  expect((await http.get(id)).state).toBe("destroyed");
  expect(backend.runningCount).toBe(0);
});

test("a sandbox that ends on its own is kept at its provider, and is shown as stopped", async () => {
  const { serve, backend } = await startProvider();
  const server = await serve();
  const http = new HttpClient(server);
  const { id } = await http.create();
  const removed = vi.spyOn((await server.live(id)).handle, "destroy");
  backend.crash(id);
  await expect.poll(async () => (await http.get(id)).state).toBe("stored");
  expect(removed).not.toHaveBeenCalled();
});

test("the key of a sandbox on another server returns that sandbox, or is refused while it is in use there", async () => {
  const { serve, backend } = await startProvider();
  const [one, two] = [await serve(), await serve()];
  const acquire = (server: TestServer, body: object = {}) =>
    new HttpClient(server).call<SandboxRecord & ErrorAnswer>("POST", "/v1/sandboxes/acquire", { key: "k", ...body });
  const { id } = (await acquire(one)).body;
  expect((await acquire(two)).body).toMatchObject({ id, tier: "reattached" });
  const client = two.attach(id);
  await client.until("RUNNING");
  // Nor is it replaced by one of another spec: the provider is not even asked.
  const found = vi.spyOn(backend, "tryResume");
  for (const body of [{}, { env: { ANOTHER: "spec" } }]) {
    const refused = await acquire(one, body);
    expect([refused.status, refused.body.error.code]).toEqual([409, "lease_held"]);
    expect(refused.body.error.details["url"]).toBe(two.httpUrl);
  }
  expect(found).not.toHaveBeenCalled();
  await client.leave();
  await expect.poll(async () => (await acquire(one, { env: { ANOTHER: "spec" } })).status).toBe(200);
  expect((await new HttpClient(one).get(id)).state).toBe("destroyed");
});

test("a sandbox that is saved to the store is found there and not at its provider; by default none is saved", async () => {
  const backend = new FakeBackend({ capabilities: { outlivesServer: true } });
  const server = await startTestServer({ backend });
  const http = new HttpClient(server);
  expect((await http.create()).flags.enable_checkpoint).toBe(false);
  const { id } = await http.create({ enable_checkpoint: true });
  await (await files(server, id)).write("/workspace/mark", Buffer.from("x"));
  expect((await http.call("POST", `/v1/sandboxes/${id}/checkpoint`)).status).toBe(200);
  expect(await http.get(id)).toMatchObject({ state: "stored" });
  expect((await http.call<SandboxRecord>("POST", `/v1/sandboxes/${id}/resume`)).body.state).toBe("running");
  expect((await (await files(server, id)).stat("/workspace/mark")).sizeBytes).toBe(1);
});

test("a sandbox that the provider finds for a key is not used if it must be saved: nobody would own it", async () => {
  const backend = new FakeBackend({ capabilities: { outlivesServer: true } });
  const http = new HttpClient(await startTestServer({ backend }));
  // As a server leaves it that died before its first save.
  vi.spyOn(backend, "tryResume").mockImplementation((request) =>
    backend.acquire({ ...request, sandboxId: randomUUID() }),
  );
  const body = { key: "k", enable_checkpoint: true };
  const { id, tier } = (await http.call<SandboxRecord & { tier: string }>("POST", "/v1/sandboxes/acquire", body)).body;
  expect(tier).toBe("fresh");
  expect((await http.call("POST", `/v1/sandboxes/${id}/checkpoint`)).status).toBe(200);
  expect(await http.get(id)).toMatchObject({ state: "stored" });
});
