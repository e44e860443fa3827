import { execFile } from "node:child_process";
import { promisify } from "node:util";
import { afterEach, beforeEach, describe, expect, test } from "vitest";
import type { DaytonaBackend } from "../../../src/backends/daytona/daytona-backend.ts";
import { errorCode } from "../contract/programs.ts";
import { openBackend, openServer } from "./lab.ts";
import { requestFor } from "./requests.ts";
import type { DaytonaServer } from "./server/daytona-server.ts";

const MINUTE_MS = 60_000;
const PROCESS = new URL("resume-process.ts", import.meta.url).pathname;

describe("resuming a sandbox at Daytona", () => {
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

  const record = (at: number) => {
    const sandbox = server.plane.sandboxes[at];
    if (sandbox === undefined) throw new Error(`The server has no sandbox ${at}.`);
    return sandbox;
  };
  const states = () => server.plane.sandboxes.map((sandbox) => sandbox.record.state);

  test("the next process finds the same sandbox with the file of the first", async () => {
    const first = await runProcess(server, "write");
    expect(states()).toEqual(["stopped"]);
    const second = await runProcess(server, "read");
    expect(second).toEqual({ vendorId: first["vendorId"], marker: "from the first process" });
    expect(server.seen("DELETE", /./)).toEqual([]);
  });

  test("another spec hash is removed and not resumed", async () => {
    await (await backend.acquire(requestFor())).stop();
    expect(await backend.tryResume(requestFor({ specHash: "hash-2" }))).toBeUndefined();
    expect(states()).toEqual(["destroyed"]);
    expect(server.seen("DELETE", /./)[0]?.query.get("force")).toBe("true");
  });

  test("a sandbox that was stopped for longer than the idle time counts as deleted", async () => {
    await (await backend.acquire(requestFor())).stop();
    record(0).record.updatedAt = new Date(Date.now() - 11 * MINUTE_MS).toISOString();
    expect(await backend.tryResume(requestFor({ idleTtlMs: 10 * MINUTE_MS }))).toBeUndefined();
    expect(states()).toEqual(["destroyed"]);
  });

  test("a sandbox that was stopped for a shorter time, or has run for long, is resumed", async () => {
    await (await backend.acquire(requestFor())).stop();
    record(0).record.updatedAt = new Date(Date.now() - 9 * MINUTE_MS).toISOString();
    expect(await backend.tryResume(requestFor({ idleTtlMs: 10 * MINUTE_MS }))).toMatchObject({
      vendorId: record(0).id,
    });
    record(0).record.updatedAt = new Date(Date.now() - 99 * MINUTE_MS).toISOString();
    const other = openBackend(server);
    expect(await other.tryResume(requestFor({ idleTtlMs: 10 * MINUTE_MS }))).toMatchObject({ vendorId: record(0).id });
  });

  test("the newest of several is kept, the others are deleted, those of other owners are not touched", async () => {
    for (const [at, owner] of ["here", "here", "someone else"].entries()) {
      await backend.acquire(requestFor({ owner }));
      record(at).record.createdAt = new Date(Date.now() - (3 - at) * MINUTE_MS).toISOString();
    }
    const other = openBackend(server);
    expect(await other.tryResume(requestFor())).toMatchObject({ vendorId: record(1).id });
    expect(states()).toEqual(["destroyed", "started", "started"]);
  });

  test("sandboxes are found on any page of the list", async () => {
    server.plane.maxPageSize = 2;
    for (let at = 0; at < 5; at++) {
      await backend.acquire(requestFor());
      record(at).record.createdAt = new Date(Date.now() + at * MINUTE_MS).toISOString();
    }
    const other = openBackend(server);
    expect(await other.tryResume(requestFor())).toMatchObject({ vendorId: record(4).id });
    expect(states()).toEqual(["destroyed", "destroyed", "destroyed", "destroyed", "started"]);
  });

  test("a failed sandbox is removed", async () => {
    await backend.acquire(requestFor());
    record(0).setState("error", "the runner is gone");
    expect(await backend.tryResume(requestFor())).toBeUndefined();
    expect(states()).toEqual(["destroyed"]);
  });

  test("a sandbox that runs but does not answer is replaced by the next one, or by none", async () => {
    await backend.acquire(requestFor());
    await backend.acquire(requestFor());
    record(0).record.createdAt = new Date(Date.now() - MINUTE_MS).toISOString();
    const silent = record(1).id;
    server.interfere = ({ host, path }) =>
      host === "toolbox" && path.includes(silent) ? { status: 502, json: { message: "bad gateway" } } : undefined;
    const other = openBackend(server);
    expect(await other.tryResume(requestFor())).toMatchObject({ vendorId: record(0).id });
    expect(states()).toEqual(["started", "destroyed"]);
  });

  test("an outage of Daytona removes nothing", async () => {
    await (await backend.acquire(requestFor())).stop();
    server.interfere = ({ path }) =>
      path.endsWith("/start") ? { status: 503, json: { message: "maintenance" } } : undefined;
    expect(await errorCode(backend.tryResume(requestFor()))).toBe("backend_unavailable");
    expect(states()).toEqual(["stopped"]);
  });

  test("a sandbox that is still stopping is awaited and started", async () => {
    await (await backend.acquire(requestFor())).stop();
    record(0).setState("stopping");
    setTimeout(() => record(0).setState("stopped"), 50);
    expect(await backend.tryResume(requestFor())).toMatchObject({ vendorId: record(0).id });
    expect(states()).toEqual(["started"]);
  });

  test("an unknown state is awaited, and named if it does not change", async () => {
    await (await backend.acquire(requestFor())).stop();
    Object.assign(record(0).record, { state: "hibernating" });
    const hasty = openBackend(server, { timing: { firstPollMs: 5, maxPollMs: 10, changeTimeoutMs: 60 } });
    const failure = await hasty.tryResume(requestFor()).catch((thrown: unknown) => thrown);
    expect(failure).toMatchObject({ code: "timeout", message: expect.stringContaining('"hibernating"') as string });
    expect(states()).toEqual(["hibernating"]);
  });

  test("without a key it is found by its id", async () => {
    const request = requestFor(undefined);
    const plain = { sandboxId: request.sandboxId, spec: request.spec };
    await (await backend.acquire(plain)).stop();
    expect(await backend.tryResume(plain)).toMatchObject({ vendorId: record(0).id, sandboxId: plain.sandboxId });
  });
});

async function runProcess(server: DaytonaServer, verb: "write" | "read"): Promise<Record<string, string>> {
  const { apiUrl, toolboxUrl, organizationId, apiKey } = server;
  const env = { ...process.env, TEST_DAYTONA: JSON.stringify({ apiUrl, toolboxUrl, organizationId, apiKey }) };
  const { stdout } = await promisify(execFile)(process.execPath, [PROCESS, verb], { env });
  return JSON.parse(stdout) as Record<string, string>;
}
