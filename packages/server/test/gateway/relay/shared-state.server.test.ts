import { expect, test } from "vitest";
import { SandboxerError, type EventRecord } from "@sandboxer/protocol";
import { eventually } from "../../../../../test/kit/eventually.ts";
import { temporaryFolder } from "../../../../../test/kit/temporary-folder.ts";
import { startTestServer, type TestServer } from "../../../../../test/kit/server/test-server.ts";
import { bearer, call, NEVER, pair } from "./support.ts";

const KEYS = { apiKeys: ["one", "two"] };

async function servers(count: number, options = {}): Promise<TestServer[]> {
  const store = await temporaryFolder();
  const started: TestServer[] = [];
  for (let number = 0; number < count; number += 1) started.push(await startTestServer({ store, ...options }));
  return started;
}

function create(server: TestServer | undefined, body: object, headers: object) {
  return call("POST", `${server?.httpUrl}/v1/sandboxes`, body, headers);
}

test("one Idempotency-Key creates one sandbox at three servers at once, and all return its token", async () => {
  const three = await servers(3, KEYS);
  const headers = { ...bearer("one"), "idempotency-key": "k" };
  const answers = await Promise.all([...three, ...three].map((server) => create(server, { name: "once" }, headers)));
  expect(answers.map(({ status }) => status)).toEqual([201, 201, 201, 201, 201, 201]);
  expect(new Set(answers.map(({ body }) => `${body.id} ${body.token}`)).size).toBe(1);
  const list = await call("GET", `${three[0]?.httpUrl}/v1/sandboxes`, undefined, bearer("one"));
  expect(list.body["items"]).toHaveLength(1);
  const other = await create(three[1], { name: "another" }, headers);
  expect([other.status, other.body.error.code]).toEqual([400, "bad_request"]);
  // Another caller's key is another key.
  const foreign = await create(three[2], { name: "once" }, { ...headers, ...bearer("two") });
  expect(foreign.body.id).not.toBe(answers[0]?.body.id);
});

test("a call that failed at one server can be repeated at another", async () => {
  const [first, second] = await servers(2);
  first?.backend.faults.set("acquire", { error: new SandboxerError("backend_unavailable", "no"), times: 1 });
  const headers = { "idempotency-key": "k" };
  expect((await create(first, {}, headers)).status).toBe(503);
  await eventually("it is forgotten", async () => (await create(second, {}, headers)).status === 201);
});

test("a call of a dead server is executed by the next one", async () => {
  const [first, second] = await servers(2, { leaseTtlMs: 60_000 });
  first?.backend.faults.set("acquire", { until: new Promise(() => {}), times: 1 });
  const headers = { "idempotency-key": "k" };
  const lost = create(first, {}, headers).catch(() => undefined);
  const repeated = create(second, {}, headers);
  await second?.instances.markDead(first?.instances.instanceId ?? "");
  expect((await repeated).status).toBe(201);
  first?.backend.faults.clear();
  void lost;
});

test("a session from one server works at the other, and a logout ends it at both", async () => {
  const [first, second] = await servers(2, KEYS);
  const enter = async (): Promise<string> => {
    const response = await fetch(`${first?.httpUrl}/v1/login`, { method: "POST", headers: bearer("one") });
    return response.headers.get("set-cookie")?.split(";")[0] ?? "";
  };
  const look = async (cookie: string): Promise<number> =>
    (await call("GET", `${second?.httpUrl}/v1/server`, undefined, { cookie })).status;
  expect(await look(await enter())).toBe(200);
  const cookie = await enter();
  const left = await fetch(`${first?.httpUrl}/v1/logout`, {
    method: "POST",
    headers: { cookie, origin: first?.httpUrl ?? "" },
  });
  expect(left.status).toBe(204);
  await eventually("the other server refuses it", async () => (await look(cookie)) === 401);
});

test("an operation is found at every server, with its result only for its caller, and after its server ended", async () => {
  const { asked, owner, box } = await pair(KEYS);
  const begun = await call(
    "POST",
    `${asked.httpUrl}/v1/sandboxes/${box.id}/snapshot`,
    {},
    {
      ...bearer("one"),
      prefer: "respond-async",
    },
  );
  expect(begun.status).toBe(202);
  const path = `/v1/operations/${begun.body.id}?wait=10`;
  const get = (server: TestServer, key = "one", more = {}) =>
    call("GET", server.httpUrl + path, undefined, { ...bearer(key), ...more });
  for (const server of [asked, owner]) {
    expect((await get(server)).body).toMatchObject({ kind: "snapshot", state: "done", result: { kind: "fake-state" } });
  }
  expect((await get(asked, "two")).body["result"]).toBeNull();
  await eventually("it is stored", async () => (await get(asked, "one", NEVER)).status === 200);
  await owner.drain();
  expect((await get(asked)).body).toMatchObject({ kind: "snapshot", state: "done", result: { kind: "fake-state" } });
  expect((await get(asked, "two")).body).toMatchObject({ state: "done", result: null });
  const unknown = await call("GET", `${asked.httpUrl}/v1/operations/none`, undefined, bearer("one"));
  expect([unknown.status, unknown.body.error.code]).toEqual([404, "operation_not_found"]);
});

test("a sandbox has one timeline, on whichever server it was and is read", async () => {
  const [first, second, third] = await servers(3);
  const { id } = (await create(first, {}, {})).body;
  const events = async (server: TestServer | undefined, query = ""): Promise<EventRecord[]> =>
    (await call("GET", `${server?.httpUrl}/v1/events?sandbox_id=${id}&limit=1000${query}`)).body["items"] as never;
  const before = await events(third);
  expect(before[0]).toMatchObject({ type: "sandbox.state", data: { to: "creating" } });
  await call("POST", `${second?.httpUrl}/v1/sandboxes/${id}/resume`);
  await eventually("the first owner's part is stored", async () => {
    const types = (await events(third)).map(({ type }) => type);
    return types.includes("sandbox.handed_over") && types.includes("sandbox.taken_over");
  });
  const [here, there, elsewhere] = await Promise.all([first, second, third].map((server) => events(server)));
  expect(there).toEqual(here);
  expect(elsewhere).toEqual(here);
  const types = (here ?? []).map(({ type }) => type);
  expect(types.indexOf("sandbox.handed_over")).toBeLessThan(types.indexOf("sandbox.taken_over"));
  // A cursor of the first server continues at any other.
  const cursor = before.at(-1)?.cursor ?? "";
  const rest = await events(third, `&cursor=${cursor}`);
  expect(rest).toEqual((here ?? []).slice(before.length));
  await call("POST", `${third?.httpUrl}/v1/sandboxes/${id}/checkpoint`);
  await eventually("the second owner's part is stored", async () =>
    (await events(third)).some(({ type, data }) => type === "sandbox.state" && data["to"] === "gone"),
  );
  expect((await events(first)).length).toBeGreaterThanOrEqual(here?.length ?? 0);
});

test("a stream of a sandbox's events ends when another server owns it, and continues there", async () => {
  const [first, second] = await servers(2);
  const { id } = (await create(first, {}, {})).body;
  const url = `${first?.httpUrl}/v1/events?sandbox_id=${id}&follow=true`;
  const response = await fetch(url);
  const seen = response.text();
  await call("POST", `${second?.httpUrl}/v1/sandboxes/${id}/resume`);
  const ids = [...(await seen).matchAll(/^id: (.*)$/gm)].map(([, cursor]) => cursor ?? "");
  const gone = new AbortController();
  const again = await fetch(url, { headers: { "last-event-id": ids.at(-1) ?? "" }, signal: gone.signal });
  let text = "";
  for await (const chunk of again.body as unknown as AsyncIterable<Uint8Array>) {
    text += Buffer.from(chunk).toString("utf8");
    if (text.includes("sandbox.taken_over")) break;
  }
  gone.abort();
  expect(text).toContain("sandbox.taken_over");
});

test("servers share the rate limit of a key, and a relayed call counts once", async () => {
  const access = { rateLimit: 0.001, rateBurst: 12 };
  const { asked, owner, box } = await pair({ ...KEYS, access });
  await eventually("both know each other", () =>
    [asked, owner].every(({ instances }) => instances.liveOthers.length === 1),
  );
  const statuses: number[] = [];
  for (let number = 0; number < 8; number += 1) {
    const { status } = await call("GET", `${asked.httpUrl}/v1/sandboxes/${box.id}/stats`, undefined, bearer("one"));
    statuses.push(status);
  }
  // Six for each of two servers.
  expect(statuses).toEqual([200, 200, 200, 200, 200, 200, 429, 429]);
  // The owner has counted the creation only. A header that a client made up changes nothing.
  const forged = { ...bearer("one"), "sandboxer-relayed": `${Date.now()}.${"0".repeat(64)}` };
  const direct: number[] = [];
  for (let number = 0; number < 6; number += 1) {
    direct.push((await call("GET", `${owner.httpUrl}/v1/sandboxes/${box.id}/stats`, undefined, forged)).status);
  }
  expect(direct).toContain(200);
  expect(direct.at(-1)).toBe(429);
});
