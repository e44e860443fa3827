import { tmpdir } from "node:os";
import { inspect } from "node:util";
import { SandboxerError } from "@sandboxer/protocol";
import { afterEach, beforeEach, describe, expect, test } from "vitest";
import type { DaytonaBackend } from "../../../src/backends/daytona/daytona-backend.ts";
import { Secret } from "../../../src/secrets/secret.ts";
import { errorCode } from "../contract/programs.ts";
import { openBackend, openServer } from "./lab.ts";
import { requestFor } from "./requests.ts";
import type { DaytonaServer } from "./server/daytona-server.ts";

describe("failures of Daytona", () => {
  let server: DaytonaServer;
  let backend: DaytonaBackend;
  beforeEach(async () => {
    server = await openServer();
    backend = openBackend(server);
  });
  afterEach(async () => {
    await backend.close();
    await server.close();
  });

  const rows = [
    { status: 400, said: "name is too long", code: "bad_request", says: "name is too long" },
    { status: 400, said: "Total CPU limit exceeded. Maximum allowed: 10.", code: "limit_reached", says: "limits" },
    { status: 401, said: "Unauthorized", code: "secret_unavailable", says: "DAYTONA_API_KEY" },
    { status: 403, said: "Forbidden resource", code: "permission_denied", says: "DAYTONA_ORGANIZATION_ID" },
    { status: 404, said: "Not Found", code: "sandbox_not_found", says: "create a new" },
    { status: 409, said: "state change in progress", code: "wrong_state", says: "try again" },
    { status: 429, said: "ThrottlerException", code: "rate_limited", says: "limits" },
    { status: 500, said: "boom", code: "backend_unavailable", says: "status.daytona.io" },
    { status: 503, said: "maintenance", code: "backend_unavailable", says: "Try again" },
  ];
  test.each(rows)("$status ($said) is $code and names the next step", async ({ status, said, code, says }) => {
    server.interfere = ({ method, path }) =>
      method === "POST" && path === "/api/sandbox"
        ? { status, json: { statusCode: status, message: said }, headers: { "retry-after": "7" } }
        : undefined;
    const failure = await failureOf(backend.acquire(requestFor()));
    expect(failure.code).toBe(code);
    expect(failure.message).toContain(said);
    expect(`${failure.message} ${failure.hint}`).toContain(says);
    expect(failure.details).toMatchObject({
      vendor_status: status,
      vendor_call: "POST /sandbox",
      retry_after_seconds: 7,
    });
  });

  test("values of secrets are not sent to Daytona, which would keep them", async () => {
    const request = requestFor({}, { env: { API_TOKEN: "hunter2", A: "1" } });
    const handle = await backend.acquire({ ...request, secretVariables: ["API_TOKEN"] });
    const kept = server.plane.sandboxes.map(({ record }) => record.env);
    expect(kept).toEqual([{ A: "1" }]);
    await handle.destroy();
  });

  test("an unreachable address and an invalid answer are distinguished", async () => {
    const nowhere = openBackend(server, { apiUrl: "http://127.0.0.1:1/api" });
    expect(await failureOf(nowhere.acquire(requestFor()))).toMatchObject({ code: "backend_unavailable" });
    server.interfere = () => ({ status: 200, json: { hello: "world" } });
    const odd = await failureOf(backend.acquire(requestFor()));
    expect(odd.code).toBe("backend_unavailable");
    expect(odd.message).toContain("of an unknown shape at id");
  });

  test("a snapshot is deleted by name, even twice; leftovers are reported; other kinds are ignored", async () => {
    const handle = await backend.acquire(requestFor());
    const take = () => handle.snapshot(tmpdir(), { mode: "filesystem", leaveRunning: true });
    const [first, second] = [await take(), await take()];
    await backend.forgetSnapshot(first);
    const [left] = [...server.plane.snapshots.keys()];
    expect([left, server.plane.snapshots.size]).toEqual([second.requirements["snapshot_name"], 1]);
    await backend.forgetSnapshot(first);
    server.interfere = ({ method }) =>
      method === "DELETE" ? { status: 403, json: { message: "Forbidden" } } : undefined;
    const failure = await failureOf(backend.forgetSnapshot(second));
    expect(failure).toMatchObject({
      code: "permission_denied",
      message: expect.stringContaining(`${left} at Daytona stays`),
    });
    const before = server.requests.length;
    await backend.forgetSnapshot({ kind: "workspace-tar", members: [], requirements: { portable: {} } });
    const elsewhere = { ...first, requirements: { ...first.requirements, api_url: "https://elsewhere.test/api" } };
    expect((await failureOf(backend.forgetSnapshot(elsewhere))).message).toContain(
      "stays: The snapshot is at https://elsewhere",
    );
    expect(server.requests).toHaveLength(before);
  });

  test("a missing snapshot endpoint is distinguished from a missing sandbox", async () => {
    const handle = await backend.acquire(requestFor());
    const save = () => failureOf(handle.snapshot(tmpdir(), { mode: "filesystem", leaveRunning: true }));
    server.plane.snapshotsDeployed = false;
    const missing = await save();
    expect(missing.code).toBe("not_supported");
    expect(missing.message).toContain("has not deployed it");
    expect(missing.message).toContain("404 Cannot POST");
    await handle.ping();

    server.plane.snapshotsDeployed = true;
    await server.plane.sandboxes[0]?.destroy();
    expect((await save()).code).toBe("sandbox_not_found");
  });

  test("a sandbox that fails to start fails at once, with Daytona's reason, and is deleted", async () => {
    server.interfere = ({ method }) => {
      if (method === "GET") server.plane.sandboxes[0]?.setState("build_failed", "no such image");
      return undefined;
    };
    const failure = await failureOf(backend.acquire(requestFor()));
    expect(failure).toMatchObject({ code: "sandbox_failed" });
    expect(failure.message).toContain("no such image");
    expect(server.plane.sandboxes[0]?.record.state).toBe("destroyed");
  });

  test("an unanswered creation leaves nothing", async () => {
    const hasty = openBackend(server, { timing: { requestTimeoutMs: 100, changeTimeoutMs: 100 } });
    let name: unknown;
    server.interfere = ({ method, body }) => {
      if (method !== "POST") return undefined;
      ({ name } = JSON.parse(body.toString("utf8")) as { name: string });
      return { status: 200, bytes: forEver() };
    };
    expect((await failureOf(hasty.acquire(requestFor()))).code).toBe("timeout");
    const [deleted] = server.seen("DELETE", /^\/sandbox\//);
    expect(deleted?.path).toBe(`/api/sandbox/${String(name)}`);
  });

  test("a cancelled creation leaves nothing", async () => {
    const controller = new AbortController();
    server.interfere = ({ path }) => {
      if (path.endsWith("/work-dir")) controller.abort(new Error("called off"));
      return undefined;
    };
    await expect(backend.acquire(requestFor(), { signal: controller.signal })).rejects.toThrow("called off");
    expect(server.plane.sandboxes[0]?.record.state).toBe("destroyed");
  });

  test("a sandbox that ends at Daytona ends here", async () => {
    const watching = openBackend(server, { timing: { firstPollMs: 5, watchMs: 10 } });
    const handle = await watching.acquire(requestFor());
    server.plane.sandboxes[0]?.setState("stopped");
    expect(await handle.ended).toMatchObject({ reason: "crashed" });
    expect(await errorCode(handle.ping())).toBe("sandbox_failed");
  });

  test("unsupported limits, images and memory snapshots are refused before any call", async () => {
    const refused = [
      { resources: { processes: 5 } },
      { image: "host" },
      { image: "docker:a\nRUN b" },
      { inputs: { repo: "x" } },
    ];
    for (const spec of refused) expect(await errorCode(backend.acquire(requestFor({}, spec)))).toBe("not_supported");
    expect(server.requests).toEqual([]);
  });

  test("resources and images are sent in the vendor's units", async () => {
    const resources = { cpus: 1.5, memoryBytes: 3 * (1 << 30) + 1, diskBytes: 5 * (1 << 30) };
    await backend.acquire(requestFor({}, { resources, image: "docker:debian:13", network: "open" }));
    const body: unknown = JSON.parse(server.seen("POST", /^\/sandbox$/)[0]?.body.toString("utf8") ?? "");
    expect(body).toMatchObject({ cpu: 2, memory: 4, disk: 5, networkBlockAll: false, autoStopInterval: 60 });
    expect(body).toMatchObject({ buildInfo: { dockerfileContent: "FROM debian:13\n" } });
  });

  test("the key is read at the first call, and is never shown", async () => {
    let reads = 0;
    const hidden = { reveal: () => server.apiKey, toJSON: () => "[hidden]" };
    const counting = openBackend(server, {
      apiKey: () => {
        reads++;
        return Promise.resolve(hidden);
      },
      organizationId: "another",
    });
    expect(reads).toBe(0);
    const health = await counting.probe();
    expect(reads).toBeGreaterThan(0);
    expect(health.ok).toBe(false);
    const failure = await failureOf(counting.acquire(requestFor()));
    const handle = await backend.acquire(requestFor());
    for (const shown of [failure, counting, backend, handle, health]) {
      expect(inspect(shown, { depth: 10, showHidden: true })).not.toContain(server.apiKey);
      expect(JSON.stringify(shown)).not.toContain(server.apiKey);
    }
    expect(failure.stack).not.toContain(server.apiKey);
  });

  test("a changed key is read again after a refusal, and not before", async () => {
    let [key, reads] = ["old", 0];
    const rotating = openBackend(server, {
      apiKey: () => {
        reads++;
        return Promise.resolve(new Secret("daytona-api-key", key));
      },
    });
    expect(await errorCode(rotating.acquire(requestFor()))).toBe("secret_unavailable");
    key = server.apiKey;
    const before = reads;
    await rotating.acquire(requestFor());
    expect(reads).toBe(before + 1);
  });

  test("stopping a sandbox that Daytona has already stopped succeeds", async () => {
    const handle = await backend.acquire(requestFor());
    server.plane.sandboxes[0]?.setState("stopped");
    await handle.stop();
    expect(await handle.ended).toMatchObject({ reason: "destroyed" });
  });

  test("an unavailable secret is an error of its own, and probe reports it", async () => {
    const absent = new SandboxerError("secret_unavailable", "The secret daytona-api-key is not set.");
    const keyless = openBackend(server, { apiKey: () => Promise.reject(absent) });
    expect(await errorCode(keyless.acquire(requestFor()))).toBe("secret_unavailable");
    expect(await keyless.probe()).toMatchObject({ ok: false, summary: absent.message });
    expect(server.requests).toEqual([]);
  });
});

async function* forEver(): AsyncGenerator<Uint8Array> {
  yield Buffer.from("{");
  await new Promise(() => {});
}

async function failureOf(promise: Promise<unknown>): Promise<SandboxerError> {
  try {
    await promise;
  } catch (thrown) {
    if (thrown instanceof SandboxerError) return thrown;
    throw thrown;
  }
  throw new Error("It did not fail.");
}
