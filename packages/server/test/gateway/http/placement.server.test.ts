import { once } from "node:events";
import { createServer, type RequestListener } from "node:http";
import type { AddressInfo } from "node:net";
import { expect, onTestFinished, test } from "vitest";
import { PEER_HEADER } from "../../../src/gateway/access/peer-secret.ts";
import { Instances } from "../../../src/lease/instances.ts";
import { openStore } from "../../../src/store/open-store.ts";
import { systemClock } from "../../../src/support/clock.ts";
import { temporaryFolder } from "../../../../../test/kit/temporary-folder.ts";
import { startTestServer } from "../../../../../test/kit/server/test-server.ts";
import { bearer, call, known, NEVER } from "../relay/support.ts";

/** A server of the store that is none of ours; `answer` gets its instance id. */
async function strangePeer(
  store: string,
  answer: (instanceId: string) => RequestListener,
): Promise<{ asked: string[] }> {
  const asked: string[] = [];
  const server = createServer((request, response) => {
    asked.push(`${request.method} ${request.url}`);
    answer(instances.instanceId)(request, response);
  });
  await once(server.listen(0, "127.0.0.1"), "listening");
  const url = `http://127.0.0.1:${(server.address() as AddressInfo).port}`;
  const registered = { store: await openStore(store), clock: systemClock, ttlMs: 60_000, url };
  const instances = await Instances.register({ ...registered, onFenced: () => {}, onError: () => {} });
  onTestFinished(async () => {
    server.closeAllConnections();
    server.close();
    await instances.close();
  });
  return { asked };
}

const roomy = (instanceId: string) =>
  JSON.stringify({
    instance_id: instanceId,
    frozen: false,
    frozen_reason: null,
    room: { places: 1_000_000, memory_bytes: null, cpus: null },
  });

test("a full server creates, restores and resumes at one with room; a caller may forbid it", async () => {
  const store = await temporaryFolder();
  const keys = { apiKeys: ["k"] };
  const full = await startTestServer({ store, ...keys, maxSandboxes: 0 });
  const open = await startTestServer({ store, ...keys });
  await known(full, 1);
  const post = (path: string, body: object = {}, more: object = {}) =>
    call("POST", `${full.httpUrl}/v1/${path}`, body, { ...bearer("k"), ...more });
  const refused = await post("sandboxes", {}, NEVER);
  expect([refused.status, refused.body.error.code]).toEqual([429, "limit_reached"]);
  const key = { "idempotency-key": "one" };
  const made = await post("sandboxes", { name: "placed" }, key);
  expect(made).toMatchObject({ status: 201, body: { name: "placed", owner: { url: open.httpUrl } } });
  expect(made.body.token).not.toBe("");
  expect((await post("sandboxes", { name: "placed" }, key)).body.id).toBe(made.body.id);
  expect((await post("sandboxes/acquire", { key: "build" })).body).toMatchObject({ owner: { url: open.httpUrl } });
  const snapshot = await post(`sandboxes/${made.body.id}/snapshot`);
  const restored = await post(`snapshots/${snapshot.body.id}/restore`);
  expect(restored).toMatchObject({ status: 201, body: { owner: { url: open.httpUrl } } });
  await post(`sandboxes/${made.body.id}/checkpoint`);
  expect(await post(`sandboxes/${made.body.id}/resume`)).toMatchObject({ body: { owner: { url: open.httpUrl } } });
});

test("a server without enough memory or CPUs for a sandbox places it where there is enough", async () => {
  const store = await temporaryFolder();
  const limits = (totalMemoryBytes: number, totalCpus: number) => ({
    resourceLimits: { everywhere: {}, here: {}, totalMemoryBytes, totalCpus },
  });
  const small = await startTestServer({ store, ...limits(2 ** 30, 2) });
  const large = await startTestServer({ store, ...limits(2 ** 33, 8) });
  await known(small, 1);
  const create = (resources: object, more: object = {}) =>
    call("POST", `${small.httpUrl}/v1/sandboxes`, { resources }, more);
  expect((await create({ memory_mb: 512 })).body).toMatchObject({ owner: { url: small.httpUrl } });
  expect((await create({ memory_mb: 1024 })).body).toMatchObject({ owner: { url: large.httpUrl } });
  expect((await create({ cpus: 3 })).body).toMatchObject({ owner: { url: large.httpUrl } });
  expect((await create({ cpus: 3 }, NEVER)).body.error.details).toMatchObject({ full: "cpus", free_cpus: 2 });
  // Nobody has that much.
  expect((await create({ cpus: 7 })).body.error).toMatchObject({ code: "limit_reached" });
});

test("a server that reports wrong room, refuses or does not answer is skipped", async () => {
  const store = await temporaryFolder();
  const liar = await strangePeer(store, (id) => (request, response) => {
    const isQuestion = request.headers[PEER_HEADER] !== undefined;
    if (isQuestion) return void response.end(roomy(id));
    const error = { code: "limit_reached", message: "full", hint: "", retryable: true, details: {} };
    response.writeHead(429, { "content-type": "application/json" }).end(JSON.stringify({ error }));
  });
  const silent = await strangePeer(store, () => () => {});
  const impostor = await strangePeer(store, () => (_request, response) => response.end(roomy("another-id")));
  const full = await startTestServer({ store, maxSandboxes: 0 });
  const open = await startTestServer({ store });
  await known(full, 4);
  const made = await call("POST", `${full.httpUrl}/v1/sandboxes`, {});
  expect(made).toMatchObject({ status: 201, body: { owner: { url: open.httpUrl } } });
  await open.drain();
  const nowhere = await call("POST", `${full.httpUrl}/v1/sandboxes`, {});
  expect([nowhere.status, nowhere.body.error.code]).toEqual([429, "limit_reached"]);
  expect(liar.asked.filter((line) => line === "POST /v1/sandboxes").length).toBeGreaterThan(0);
  expect([...silent.asked, ...impostor.asked]).not.toContain("POST /v1/sandboxes");
});

test("of two servers the one with the container image is asked first, then the one with more room", async () => {
  const store = await temporaryFolder();
  const order: string[] = [];
  const peer = (name: string, places: number): Promise<unknown> =>
    strangePeer(store, (id) => (request, response) => {
      const condition = JSON.parse(roomy(id)) as object;
      const room = { places, memory_bytes: null, cpus: null };
      const has_image = name === "cached" && request.url?.endsWith("?image=python%3A3") === true;
      if (request.method === "GET") return void response.end(JSON.stringify({ ...condition, room, has_image }));
      order.push(name);
      response.writeHead(503).end();
    });
  await Promise.all([peer("cached", 1), peer("roomy", 100)]);
  const full = await startTestServer({ store, maxSandboxes: 0 });
  await known(full, 2);
  await call("POST", `${full.httpUrl}/v1/sandboxes`, { image: "python:3" });
  await call("POST", `${full.httpUrl}/v1/sandboxes`, {});
  expect(order).toEqual(["cached", "roomy", "roomy", "cached"]);
});

test("a server that dies while it creates the sandbox is reported, and no other one is asked", async () => {
  const store = await temporaryFolder();
  const dying = await strangePeer(store, (id) => (request, response) => {
    if (request.method === "GET") return void response.end(roomy(id));
    response.destroy();
  });
  const full = await startTestServer({ store, maxSandboxes: 0 });
  await known(full, 1);
  const { status, body } = await call("POST", `${full.httpUrl}/v1/sandboxes`, {});
  expect([status, body.error.code]).toEqual([503, "server_unreachable"]);
  expect(dying.asked.filter((line) => line === "POST /v1/sandboxes")).toHaveLength(1);
});

test("a client's encryption key is not sent along: its sandbox is refused", async () => {
  const store = await temporaryFolder();
  const full = await startTestServer({ store, maxSandboxes: 0 });
  await startTestServer({ store });
  await known(full, 1);
  const key = { "sandboxer-encryption-key": Buffer.alloc(32, 7).toString("base64") };
  const refused = await call("POST", `${full.httpUrl}/v1/sandboxes`, {}, key);
  expect([refused.status, refused.body.error.code]).toEqual([429, "limit_reached"]);
});
