import { describe, expect, test } from "vitest";
import { Sandbox, Sandboxer } from "../../src/index.ts";
import { deadUrl, failure, scriptedServer, type ScriptedAnswer } from "../support/scripted-server.ts";

const RECORD = { status: 200, body: { id: "s", state: "running" } } satisfies ScriptedAnswer;
const STATS = { status: 200, body: { memory_bytes: 1, disk_bytes: 2, cpu_ms: 3 } } satisfies ScriptedAnswer;
const STORED = failure(409, "wrong_state", { state: "stored" });
const heldBy = (url: string | null): ScriptedAnswer => failure(409, "lease_held", { url });

/** A handle on sandbox "s"; the script of the server begins after the handle was created. */
async function handle(script: ScriptedAnswer[], options = {}): Promise<{ sandbox: Sandbox; paths: () => string[] }> {
  const server = await scriptedServer(RECORD, ...script);
  const client = new Sandboxer({ url: server.url, apiKey: "k", retry: { firstDelayMs: 1 } });
  const sandbox = await Sandbox.attach("s", { client, ...options });
  return { sandbox, paths: () => server.requests.slice(1).map(({ method, path }) => `${method} ${path}`) };
}

describe("a paused sandbox", () => {
  test("is resumed when it is used, once for all users", async () => {
    const { sandbox, paths } = await handle([STORED, STORED, RECORD, STATS, STATS]);
    expect(await Promise.all([sandbox.stats(), sandbox.stats()])).toHaveLength(2);
    expect(paths().filter((path) => path === "POST /v1/sandboxes/s/resume")).toHaveLength(1);
  });

  test("stays paused on request", async () => {
    const { sandbox, paths } = await handle([STORED], { autoResume: false });
    await expect(sandbox.stats()).rejects.toMatchObject({ code: "wrong_state", details: { state: "stored" } });
    expect(paths()).toEqual(["GET /v1/sandboxes/s/stats"]);
  });

  test("whose resume fails reports the reason", async () => {
    const { sandbox } = await handle([STORED, failure(422, "image_damaged")]);
    await expect(sandbox.stats()).rejects.toMatchObject({ code: "image_damaged" });
  });
});

test("a resume whose connection broke is repeated; callers wait for one in progress", async () => {
  const restoring = failure(409, "wrong_state", { state: "restoring" });
  const { sandbox, paths } = await handle(["hang up", restoring, restoring, RECORD]);
  expect(await sandbox.resume()).toMatchObject({ state: "running" });
  expect(new Set(paths())).toEqual(new Set(["POST /v1/sandboxes/s/resume"]));
});

test("a checkpoint whose answer was lost is done if the sandbox is paused, and otherwise not repeated", async () => {
  const stored = { status: 200, body: { id: "s", state: "stored" } };
  const done = await handle(["hang up", stored]);
  expect(await done.sandbox.checkpoint()).toMatchObject({ state: "stored" });
  const unknown = await handle(["hang up", RECORD]);
  await expect(unknown.sandbox.checkpoint()).rejects.toMatchObject({ code: "server_unreachable" });
  expect(unknown.paths()).toEqual(["POST /v1/sandboxes/s/checkpoint", "GET /v1/sandboxes/s"]);
});

test("a call waits for a sandbox that is being saved", async () => {
  const saving = failure(409, "wrong_state", { state: "saving" });
  const { sandbox, paths } = await handle([saving, saving, STORED, RECORD, STATS]);
  expect(await sandbox.stats()).toEqual({ memoryBytes: 1, diskBytes: 2, cpuMs: 3 });
  expect(paths().at(-2)).toBe("POST /v1/sandboxes/s/resume");
});

describe("a sandbox on another server", () => {
  test("is used there, with the same key, and directly from then on", async () => {
    const owner = await scriptedServer(RECORD, STATS);
    const { sandbox, paths } = await handle([heldBy(owner.url)]);
    await sandbox.stats();
    await sandbox.stats();
    expect(paths()).toEqual(["GET /v1/sandboxes/s/stats"]);
    expect(owner.requests.map(({ path }) => path)).toEqual([
      "/v1/sandboxes/s",
      "/v1/sandboxes/s/stats",
      "/v1/sandboxes/s/stats",
    ]);
    expect(owner.requests[1]?.headers.authorization).toBe("Bearer k");
  });

  test("is requested if its server is unreachable, unknown, or not to be followed", async () => {
    for (const [url, options] of [
      [await deadUrl(), {}],
      [null, {}],
      ["file:///etc/passwd", {}],
      [(await scriptedServer(RECORD, STATS)).url, { followOwner: false }],
    ] as const) {
      const { sandbox, paths } = await handle([heldBy(url), RECORD, STATS], options);
      await sandbox.stats();
      expect(paths()).toEqual([
        "GET /v1/sandboxes/s/stats",
        "POST /v1/sandboxes/s/resume",
        "GET /v1/sandboxes/s/stats",
      ]);
    }
  });

  test("is looked for at the client's own server when its server ends", async () => {
    const owner = await scriptedServer(RECORD, STATS, "hang up");
    const { sandbox, paths } = await handle([heldBy(owner.url), STATS]);
    await sandbox.stats();
    await sandbox.stats();
    expect(paths()).toEqual(["GET /v1/sandboxes/s/stats", "GET /v1/sandboxes/s/stats"]);
  });

  test("keeps one idempotency key for all attempts", async () => {
    const owner = await scriptedServer(RECORD, failure(503, "draining"), { status: 201, body: { id: "snap" } });
    const server = await scriptedServer(RECORD, heldBy(owner.url));
    const client = new Sandboxer({ url: server.url, retry: { firstDelayMs: 1 } });
    await (await Sandbox.attach("s", { client })).snapshot({ name: "n" });
    const keys = [...server.requests, ...owner.requests].map(({ headers }) => headers["idempotency-key"]);
    expect(new Set(keys.filter((key) => key !== undefined)).size).toBe(1);
    expect(keys.filter((key) => key !== undefined)).toHaveLength(3);
  });
});

test("a stream of bytes is sent only once the sandbox is running", async () => {
  const page = { status: 200, body: { items: [], next_cursor: null } };
  const { sandbox, paths } = await handle([STORED, RECORD, page, { status: 204 }]);
  await sandbox.files.write("/a", ReadableStream.from([new TextEncoder().encode("bytes")]));
  expect(paths()).toEqual([
    "GET /v1/sandboxes/s/processes",
    "POST /v1/sandboxes/s/resume",
    "GET /v1/sandboxes/s/processes",
    "PUT /v1/sandboxes/s/files?path=%2Fa&parents=true",
  ]);
});

test("the end of a scope deletes, or saves with keep; a sandbox that is already deleted is no error", async () => {
  const gone = await handle([failure(410, "sandbox_destroyed")]);
  await gone.sandbox[Symbol.asyncDispose]();
  expect(gone.paths()).toEqual(["DELETE /v1/sandboxes/s"]);
  const kept = await handle([RECORD, RECORD], { keep: true });
  await kept.sandbox[Symbol.asyncDispose]();
  expect(kept.paths()).toEqual(["GET /v1/sandboxes/s", "POST /v1/sandboxes/s/checkpoint"]);
  const stored = await handle([{ status: 200, body: { id: "s", state: "stored" } }], { keep: true });
  await stored.sandbox[Symbol.asyncDispose]();
  expect(stored.paths()).toEqual(["GET /v1/sandboxes/s"]);
  const failing = await handle([failure(500, "internal")]);
  await expect(failing.sandbox[Symbol.asyncDispose]()).rejects.toMatchObject({ code: "internal" });
});
