import { Sandbox, SandboxError, Template } from "e2b";
import { expect, test } from "vitest";
import { setE2bEnvironment, startForE2b } from "./sdk.ts";

const KEY = "a-key-of-twenty-characters";

test("lists have filters, an order and pages", async () => {
  await startForE2b();
  const first = await Sandbox.create({ metadata: { "a b": "c=d", team: "ml" } });
  const second = await Sandbox.create({ metadata: { team: "ml" } });
  const third = await Sandbox.create("code-interpreter-v1");
  await second.pause();
  const idsOf = async (options: Parameters<typeof Sandbox.list>[0]): Promise<string[]> => {
    const pages = Sandbox.list(options);
    const ids: string[] = [];
    while (pages.hasNext) ids.push(...(await pages.nextItems()).map(({ sandboxId }) => sandboxId));
    return ids;
  };
  const newestFirst = [third, second, first].map(({ sandboxId }) => sandboxId);
  expect(await idsOf({ limit: 1 })).toEqual(newestFirst);
  expect(await idsOf({ limit: 2, order: "asc" })).toEqual(newestFirst.toReversed());
  expect(await idsOf({ query: { metadata: { "a b": "c=d" } } })).toEqual([first.sandboxId]);
  expect(await idsOf({ query: { metadata: { team: "ml" }, state: ["paused"] } })).toEqual([second.sandboxId]);
  expect(await idsOf({ query: { template: "code-interpreter-v1" } })).toEqual([third.sandboxId]);
  expect(await idsOf({ query: { startedAfter: new Date(Date.now() + 60_000) } })).toEqual([]);
});

test("a fork runs beside its source, with its metadata and a token of its own", async () => {
  await startForE2b();
  const source = await Sandbox.create({ metadata: { team: "ml" } });
  const forks = await source.fork({ count: 2, timeoutMs: 60_000 });
  expect(forks).toHaveLength(2);
  const [fork] = forks;
  if (fork === undefined || fork instanceof Error) throw fork ?? new Error("there is no fork");
  const info = await fork.getInfo();
  expect(info.metadata).toEqual({ team: "ml" });
  expect(fork.sandboxId === source.sandboxId).toBe(false);
  expect(await source.isRunning()).toBe(true);
});

test("a snapshot is a template by its id and its names, until it is deleted", async () => {
  const server = await startForE2b();
  const sandbox = await Sandbox.create();
  const { handle } = await server.live(sandbox.sandboxId);
  await handle.files.write("/workspace/kept", Buffer.from("kept"));
  const snapshot = await sandbox.createSnapshot({ name: "ready" });
  expect(snapshot.names).toEqual(["ready"]);
  for (const template of [snapshot.snapshotId, "ready", "ready:default", "team/ready"]) {
    const copy = await Sandbox.create(template, { metadata: { copy: template } });
    const inside = await server.live(copy.sandboxId);
    expect(await inside.handle.files.stat("/workspace/kept")).toMatchObject({ sizeBytes: 4 });
    expect((await copy.getInfo()).metadata).toEqual({ copy: template });
    await copy.kill();
  }
  expect(await Template.exists("ready")).toBe(true);
  expect(await Template.exists("nothing")).toBe(false);
  const later = await sandbox.createSnapshot({ name: "ready" });
  const listed = await Sandbox.listSnapshots({ sandboxId: sandbox.sandboxId }).nextItems();
  expect(listed.map(({ snapshotId }) => snapshotId)).toEqual([later.snapshotId, snapshot.snapshotId]);
  expect(await Sandbox.deleteSnapshot("team/ready:default")).toBe(true);
  expect(await Sandbox.deleteSnapshot("ready")).toBe(false);
  await expect(Sandbox.create("ready")).rejects.toThrow(/404.*no template "ready"/);
});

test("the network is open unless the client restricts it", async () => {
  await startForE2b();
  const sandbox = await Sandbox.create();
  expect((await sandbox.getInfo()).allowInternetAccess).toBe(true);
  const closed = await Sandbox.create({ allowInternetAccess: false });
  expect((await closed.getInfo()).allowInternetAccess).toBe(false);
  await closed.updateNetwork({ allowOut: ["example.com"], denyOut: ["0.0.0.0/0"] });
  expect((await closed.getInfo()).network).toMatchObject({ allowOut: ["example.com"], denyOut: ["0.0.0.0/0"] });
  await expect(sandbox.updateNetwork({ allowOut: ["example.com"] })).rejects.toThrow(/denyOut/);
  const rules = { "example.com": [{ transform: [{ headers: { a: "b" } }] }] };
  await expect(Sandbox.create({ network: { rules } } as never)).rejects.toThrow(/501/);
});

test("metrics are points within the requested time", async () => {
  await startForE2b();
  const sandbox = await Sandbox.create();
  await expect.poll(async () => (await sandbox.getMetrics()).length).toBeGreaterThan(0);
  const [point] = await sandbox.getMetrics();
  expect(point?.memTotal).toBeGreaterThan(0);
  expect(await sandbox.getMetrics({ start: new Date(Date.now() + 60_000) })).toEqual([]);
});

test("a key is needed, in either of its forms", async () => {
  const server = await startForE2b({ apiKeys: [KEY] });
  await Sandbox.create();
  setE2bEnvironment(server, `e2b_${Buffer.from(KEY).toString("hex")}`);
  await Sandbox.create();
  setE2bEnvironment(server, "another");
  await expect(Sandbox.create()).rejects.toThrow(/API key/);
});

test("parts of E2B that the server does not have answer 501 in E2B's shape", async () => {
  const server = await startForE2b();
  const calls: [string, string, object?][] = [
    ["POST", "/v3/templates", { name: "mine" }],
    ["GET", "/templates/mine/files/abc"],
    ["GET", "/volumes"],
    ["GET", "/secrets"],
    ["GET", "/teams"],
    ["POST", "/v2/sandboxes", { templateID: "base", mcp: { server: {} } }],
    ["POST", "/v2/sandboxes", { templateID: "base", volumeMounts: [{ name: "a", path: "/a" }] }],
    ["POST", "/v2/sandboxes", { templateID: "base", network: { ofTomorrow: ["a"] } }],
  ];
  for (const [method, path, body] of calls) {
    const answer = await fetch(`${server.httpUrl}/e2b${path}`, { method, ...jsonBody(body) });
    expect({ path, status: answer.status, answer: await answer.json() }).toMatchObject({
      path,
      status: 501,
      answer: { code: 501, message: expect.any(String) },
    });
  }
  await expect(Sandbox.create("base", { mcp: { server: {} } } as never)).rejects.toBeInstanceOf(SandboxError);
});

test("bad requests are refused in E2B's shape", async () => {
  const server = await startForE2b();
  const bodies = [
    {},
    { templateID: 1 },
    { templateID: "base", timeout: "soon" },
    { templateID: "base", metadata: { "sandboxer.e2b/template": "x" } },
    { templateID: "base", autoPauseMemory: false },
    { templateID: "base", autoResume: { enabled: true, ofTomorrow: 1 } },
    { templateID: "base", envVars: { "not valid": "1" } },
  ];
  for (const body of bodies) {
    const answer = await fetch(`${server.httpUrl}/e2b/v2/sandboxes`, { method: "POST", ...jsonBody(body) });
    expect({ body, status: answer.status, answer: await answer.json() }).toMatchObject({
      body,
      status: 400,
      answer: { code: 400 },
    });
  }
  const broken = await fetch(`${server.httpUrl}/e2b/v2/sandboxes`, { method: "POST", body: "{" });
  expect(await broken.json()).toMatchObject({ code: 400 });
});

test("a create with the same Idempotency-Key creates one sandbox", async () => {
  const server = await startForE2b();
  const create = async (): Promise<string> => {
    const { headers, ...body } = jsonBody({ templateID: "base" });
    const init = { method: "POST", headers: { ...headers, "idempotency-key": "once" }, ...body };
    const answer = await fetch(`${server.httpUrl}/e2b/v2/sandboxes`, init);
    return ((await answer.json()) as { sandboxID: string }).sandboxID;
  };
  expect(new Set([await create(), await create()]).size).toBe(1);
});

function jsonBody(body: object | undefined): { headers?: Record<string, string>; body?: string } {
  return body === undefined ? {} : { headers: { "content-type": "application/json" }, body: JSON.stringify(body) };
}
