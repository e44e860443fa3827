import { createHash, randomBytes } from "node:crypto";
import { once } from "node:events";
import { createServer } from "node:http";
import type { AddressInfo } from "node:net";
import { expect, onTestFinished, test } from "vitest";
import { FakeBackend } from "../../../src/backends/fake/index.ts";
import { eventually } from "../../../../../test/kit/eventually.ts";
import { temporaryFolder } from "../../../../../test/kit/temporary-folder.ts";
import { startTestServer } from "../../../../../test/kit/server/test-server.ts";
import { lines, ticking } from "../http/processes/support.ts";
import { call, NEVER, pair, RELAY } from "./support.ts";
import { meanwhile } from "../../../../../test/kit/meanwhile.ts";

test("a call is passed on to the server that has the sandbox, unless the client forbids it", async () => {
  const { url } = await pair();
  const run = { shell: "echo $((6*7)); exit 3" };
  expect(await call("POST", `${url}/exec`, run)).toMatchObject({ status: 200, body: { exit_code: 3, stdout: "42\n" } });
  const refused = await call("POST", `${url}/exec`, run, NEVER);
  expect([refused.status, refused.body.error.code]).toEqual([409, "lease_held"]);
  const passed = await call("POST", `${url}/exec`, run, RELAY);
  expect(passed).toMatchObject({ status: 200, body: { exit_code: 3, stdout: "42\n" } });
  expect(await call("PATCH", url, { name: "renamed" }, RELAY)).toMatchObject({ body: { name: "renamed" } });
  expect(await call("GET", `${url}/reachability`, undefined, RELAY)).toMatchObject({ body: { reachable: true } });
  expect(await call("GET", `${url}/files/stat?path=%2Fnone`, undefined, RELAY)).toMatchObject({
    status: 404,
    body: { error: { code: "file_not_found" } },
  });
});

test("a resume is not passed on: it brings the sandbox here", async () => {
  const { url, asked } = await pair();
  expect(await call("POST", `${url}/resume`, undefined, RELAY)).toMatchObject({
    status: 200,
    body: { owner: { url: asked.httpUrl } },
  });
});

test("headers that change the meaning of a call are relayed, and so are those of the response", async () => {
  const { url } = await pair();
  const stale = await call("POST", `${url}/exec`, { shell: "true" }, { ...RELAY, "if-sandbox-epoch": "7" });
  expect([stale.status, stale.body.error.code]).toEqual([412, "stale_epoch"]);
  const key = { ...RELAY, "idempotency-key": "one" };
  const first = await call("POST", `${url}/exec`, { shell: "echo x >> runs; cat runs" }, key);
  const again = await call("POST", `${url}/exec`, { shell: "echo x >> runs; cat runs" }, key);
  expect(again.body["process_id"]).toBe(first.body["process_id"]);
});

test("a file that is larger than any message is uploaded and downloaded unchanged", async () => {
  const { url } = await pair();
  // A body that is no file may have 8 MiB.
  const content = randomBytes(9_000_000);
  const digest = (bytes: Uint8Array): string => createHash("sha256").update(bytes).digest("hex");
  const headers = { ...RELAY, "content-type": "application/octet-stream" };
  // Once with its length, once chunked.
  for (const body of [content, new Blob([content]).stream()]) {
    const up = await fetch(`${url}/files?path=%2Fworkspace%2Fbig`, { method: "PUT", headers, body, duplex: "half" });
    expect(up.status).toBe(204);
    const down = await fetch(`${url}/files?path=%2Fworkspace%2Fbig`, { headers: RELAY });
    expect(down.headers.get("content-type")).toBe("application/octet-stream");
    expect(down.headers.get("x-content-type-options")).toBe("nosniff");
    expect(down.headers.get("content-disposition")).toContain("attachment");
    expect(digest(await down.bytes())).toBe(digest(content));
  }
  const tree = await fetch(`${url}/tree?path=%2Fworkspace`, { headers: RELAY });
  expect([tree.status, tree.headers.get("content-type")]).toEqual([200, "application/x-tar"]);
  expect((await tree.bytes()).length).toBeGreaterThan(9_000_000);
});

test("an upload that is refused in its middle is answered", async () => {
  const { url } = await pair();
  const response = await fetch(`${url}/files?path=%2Fnowhere%2Fbig`, {
    method: "PUT",
    headers: { ...RELAY, "content-type": "application/octet-stream", "if-sandbox-epoch": "99" },
    body: randomBytes(20_000_000),
  });
  expect(response.status).toBe(412);
  await response.body?.cancel();
});

test("a stream is relayed line by line, and a client that disconnects ends it there", async () => {
  const { url, owner, box } = await pair();
  const gone = new AbortController();
  const response = await fetch(`${url}/exec`, {
    method: "POST",
    headers: { ...RELAY, accept: "application/x-ndjson", "content-type": "application/json" },
    body: JSON.stringify({ shell: ticking, on_disconnect: "kill" }),
    signal: gone.signal,
  });
  expect(response.headers.get("content-type")).toBe("application/x-ndjson");
  const all = lines(response);
  expect((await all.next()).value).toMatchObject({ event: "started" });
  expect((await all.next()).value).toMatchObject({ event: "stdout" });
  const before = owner.sockets.size;
  gone.abort();
  await eventually("the process was killed", async () => (await box.processes())[0]?.signal === "SIGKILL");
  await eventually("the connection between the servers is closed", () => owner.sockets.size < before);
});

test("the called server answers for a paused, a local and a nonexistent sandbox", async () => {
  const { asked, box, url } = await pair();
  const none = await call("GET", `${asked.httpUrl}/v1/sandboxes/none/stats`, undefined, RELAY);
  expect([none.status, none.body.error.code]).toEqual([404, "sandbox_not_found"]);
  await box.call("POST", "/checkpoint");
  const stored = await call("GET", `${url}/stats`, undefined, RELAY);
  expect(stored.body.error).toMatchObject({ code: "wrong_state", details: { state: "stored" } });
  await call("POST", `${url}/resume`);
  expect((await call("GET", `${url}/stats`, undefined, RELAY)).status).toBe(200);
});

test("a sandbox that its provider keeps is passed on to the server that runs it", async () => {
  const backend = new FakeBackend({ capabilities: { snapshot: "none", outlivesServer: true } });
  const dataFolder = await temporaryFolder();
  const owner = await startTestServer({ backend, dataFolder });
  const store = owner.storeFolder ?? null;
  const asked = await startTestServer({ store, dataFolder });
  const { id } = (await call("POST", `${owner.httpUrl}/v1/sandboxes`, {})).body;
  const url = `${asked.httpUrl}/v1/sandboxes/${id}/exec`;
  expect((await call("POST", url, { shell: "echo ran" }, RELAY)).body["stdout"]).toBe("ran\n");
  // A server with another store does not know it.
  const stranger = await startTestServer({ dataFolder });
  const elsewhere = `${stranger.httpUrl}/v1/sandboxes/${id}/exec`;
  expect((await call("POST", elsewhere, { shell: "true" }, RELAY)).body.error.code).toBe("sandbox_not_found");
});

test("nothing is relayed twice, and only headers about the call are relayed", async () => {
  const seen: { url: string | undefined; headers: Record<string, unknown> }[] = [];
  const stand = createServer((request, response) => {
    seen.push({ url: request.url, headers: request.headers });
    response.writeHead(409, { "content-type": "application/json", "set-cookie": "a=b" }).end('{"error":{}}');
  });
  await once(stand.listen(0, "127.0.0.1"), "listening");
  onTestFinished(() => void stand.close());
  const advertiseUrl = `http://127.0.0.1:${(stand.address() as AddressInfo).port}/behind/`;
  const owner = await startTestServer({ advertiseUrl });
  const access = { trustedProxies: ["127.0.0.1"] };
  const asked = await startTestServer({ store: owner.storeFolder ?? null, access });
  const { id } = (await call("POST", `${owner.httpUrl}/v1/sandboxes`, {})).body;
  const headers = { ...RELAY, cookie: "c=d", origin: asked.httpUrl, "x-forwarded-for": "9.9.9.9", range: "bytes=0-1" };
  const path = `/v1/sandboxes/${id}/processes/a%2Fb/output?offset=3`;
  const answer = await call("GET", asked.httpUrl + path, undefined, headers);
  expect([answer.status, answer.headers.get("set-cookie")]).toEqual([409, null]);
  expect(seen).toHaveLength(1);
  expect(seen[0]?.url).toBe(`/behind${path}`);
  expect(seen[0]?.headers["sandboxer-relay"]).toBe("never");
  const told = Object.keys(seen[0]?.headers ?? {}).toSorted();
  expect(told).toEqual([
    "accept",
    "connection",
    "content-length",
    "host",
    "range",
    "sandboxer-relay",
    "sandboxer-relayed",
  ]);
});

test("an unreachable owner is named, with the next step", async () => {
  const { asked, owner, url } = await pair();
  // As after a crash: its record says that it lives, and nobody answers at its address.
  const dead = await startTestServer({ store: owner.storeFolder ?? null, advertiseUrl: "http://127.0.0.1:9" });
  await call("POST", `${dead.httpUrl}/v1/sandboxes/${url.split("/").at(-1)}/resume`);
  const answer = await call("POST", `${url}/exec`, { shell: "true" }, RELAY);
  expect([answer.status, answer.body.error.code]).toEqual([503, "server_unreachable"]);
  expect(answer.body.error.details).toEqual({
    url: "http://127.0.0.1:9",
    owner: dead.instances?.instanceId,
    reached: false,
  });
  expect((await call("POST", `${url}/resume`)).body).toMatchObject({ owner: { url: asked.httpUrl } });
});

test("an owner that does not answer is waited for until it is declared dead", async () => {
  const stand = createServer(() => {});
  await once(stand.listen(0, "127.0.0.1"), "listening");
  onTestFinished(() => {
    stand.closeAllConnections();
    stand.close();
  });
  const owner = await startTestServer({ advertiseUrl: `http://127.0.0.1:${(stand.address() as AddressInfo).port}` });
  const asked = await startTestServer({ store: owner.storeFolder ?? null });
  const { id } = (await call("POST", `${owner.httpUrl}/v1/sandboxes`, {})).body;
  const waiting = call("POST", `${asked.httpUrl}/v1/sandboxes/${id}/exec`, { shell: "true" }, RELAY);
  await once(stand, "request");
  await asked.instances.markDead(owner.instances.instanceId ?? "");
  const answer = await waiting;
  expect([answer.status, answer.body.error.code]).toEqual([503, "server_unreachable"]);
  expect(answer.body.error.details).toMatchObject({ reached: true });
});

test("an owner that dies in the middle of an upload is reported as such", async () => {
  const { owner, url } = await pair();
  const begun = Promise.withResolvers<void>();
  const body = new ReadableStream<Uint8Array>({
    pull: async (controller) => {
      controller.enqueue(new Uint8Array(100_000));
      begun.resolve();
      await meanwhile(5);
    },
  });
  const up = fetch(`${url}/files?path=%2Fworkspace%2Fbig`, {
    method: "PUT",
    headers: { ...RELAY, "content-type": "application/octet-stream" },
    body,
    duplex: "half",
  });
  await begun.promise;
  await eventually("it has reached the owner", () => owner.sockets.size > 1);
  for (const socket of owner.sockets) socket.resetAndDestroy();
  const response = await up;
  expect(response.status).toBe(503);
  expect(await response.json()).toMatchObject({ error: { code: "server_unreachable", details: { reached: true } } });
});

test("an owner that dies in the middle of an answer cuts it off", async () => {
  const { owner, url } = await pair();
  const response = await fetch(`${url}/exec`, {
    method: "POST",
    headers: { ...RELAY, accept: "application/x-ndjson", "content-type": "application/json" },
    body: JSON.stringify({ shell: ticking }),
  });
  const all = lines(response);
  await all.next();
  for (const socket of owner.sockets) socket.resetAndDestroy();
  await expect(Array.fromAsync(all)).rejects.toThrow("terminated");
});
