import { randomUUID } from "node:crypto";
import { mkdtemp, readdir, rm } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { SandboxerError } from "@sandboxer/protocol";
import { afterEach, beforeEach, expect, test } from "vitest";
import type { AcquireRequest, SandboxSpec } from "../../../src/backends/backend.ts";
import type { SandboxExtension } from "../../../src/backends/extension/extension.ts";
import { ExtensionBackend } from "../../../src/backends/extension/extension-backend.ts";
import { SaasStubExtension } from "../../../src/backends/saas-stub/saas-stub-extension.ts";
import { errorCode } from "../contract/programs.ts";
import { throughStore } from "../through-store.ts";

let folder = "";
beforeEach(async () => {
  folder = await mkdtemp(join(tmpdir(), "sbx-adapter-"));
});
afterEach(() => rm(folder, { recursive: true, force: true }));

function requestFor(spec: Partial<SandboxSpec> = {}): AcquireRequest {
  return { sandboxId: randomUUID(), spec: { env: {}, resources: {}, network: "none", ...spec } };
}

/** The three hooks, and a list of the calls. */
function minimal(hooks: Partial<SandboxExtension> = {}): SandboxExtension & { calls: string[] } {
  const calls: string[] = [];
  const note = (name: string) => async () => {
    calls.push(name);
    return {};
  };
  return {
    name: "minimal",
    calls,
    provision: async () => {
      calls.push("provision");
      return { id: "1" };
    },
    waitReady: async () => void (await note("waitReady")()),
    teardown: async () => void (await note("teardown")()),
    ...hooks,
  };
}

test("three hooks make a backend; calls without a hook are refused before anything happens", async () => {
  const extension = minimal();
  const backend = new ExtensionBackend(extension);
  expect(backend.capabilities).toEqual({
    snapshot: "none",
    filesystemSnapshot: false,
    pty: false,
    files: false,
    connect: false,
    network: false,
    limits: false,
    outlivesServer: false,
    selfHosted: false,
  });
  for (const spec of [{ image: "host" }, { network: "open" }, { resources: { cpus: 1 } }] as const) {
    expect(await errorCode(backend.acquire(requestFor(spec)))).toBe("not_supported");
  }
  expect(extension.calls).toEqual([]);
  const handle = await backend.acquire(requestFor());
  const codes = await Promise.all([
    errorCode(handle.exec({ key: "k", argv: ["true"] })),
    errorCode(handle.files.stat("/")),
    errorCode(handle.processTable()),
    errorCode(handle.connect(80)),
    errorCode(handle.freeze()),
    errorCode(handle.snapshot(folder, { mode: "filesystem", leaveRunning: true })),
  ]);
  expect(new Set(codes)).toEqual(new Set(["not_supported"]));
  expect(await backend.tryResume(requestFor())).toBeUndefined();
  await handle.ping();
  await backend.close();
  expect(await handle.ended).toMatchObject({ reason: "destroyed" });
  expect(extension.calls).toEqual(["provision", "waitReady", "waitReady", "teardown"]);
});

test("a sandbox that does not become ready is torn down; if that fails too, both errors are reported", async () => {
  const waitReady = async (): Promise<void> => {
    throw new Error("never up");
  };
  const extension = minimal({ waitReady });
  await expect(new ExtensionBackend(extension).acquire(requestFor())).rejects.toMatchObject({
    code: "backend_unavailable",
    message: "The backend minimal failed: never up",
  });
  expect(extension.calls).toEqual(["provision", "teardown"]);
  const teardown = async (): Promise<void> => {
    throw new SandboxerError("no_space", "Stuck.");
  };
  const stuck = new ExtensionBackend(minimal({ waitReady, teardown }));
  await expect(stuck.acquire(requestFor())).rejects.toMatchObject({
    message: expect.stringMatching(/never up.*could not be removed.*Stuck/s),
    details: { left: { id: "1" } },
  });
});

test("handles are kept in a folder: another server finds the sandbox, until it is deleted", async () => {
  const open = (extension = minimal()): ExtensionBackend =>
    new ExtensionBackend(extension, { handlesDirectory: folder });
  const request = requestFor();
  const first = open();
  expect(first.capabilities.outlivesServer).toBe(true);
  const handle = await first.acquire(request);
  await first.close();
  expect(await errorCode(handle.ping())).toBe("sandbox_failed");

  const unreachable = minimal({ waitReady: () => Promise.reject(new Error("no route")) });
  expect(await errorCode(open(unreachable).tryResume(request))).toBe("backend_unavailable");
  const identity = { key: "k", specHash: "another", owner: "o", idleTtlMs: 1 };
  expect(await open().tryResume({ ...request, identity })).toBeUndefined();
  const extension = minimal();
  const found = await open(extension).tryResume(request);
  expect(found?.sandboxId).toBe(request.sandboxId);
  await found?.destroy();
  await found?.destroy();
  expect(extension.calls).toEqual(["waitReady", "teardown"]);
  expect(await readdir(folder)).toEqual([]);
});

test("an end that the extension reports is an end for everyone", async () => {
  const ending = Promise.withResolvers<{ reason: "out_of_memory"; message: string }>();
  const backend = new ExtensionBackend(minimal({ waitEnd: () => ending.promise }));
  const handle = await backend.acquire(requestFor());
  ending.resolve({ reason: "out_of_memory", message: "it ate too much." });
  expect(await handle.ended).toEqual({ reason: "out_of_memory", message: "it ate too much." });
  expect(await errorCode(handle.ping())).toBe("sandbox_failed");
});

test("any error of a price query names the extension that failed", async () => {
  const estimateCost = (): Promise<never> => Promise.reject(new TypeError("no price list"));
  await expect(new ExtensionBackend(minimal({ estimateCost })).estimateCost(requestFor())).rejects.toMatchObject({
    code: "backend_unavailable",
    message: "The backend minimal failed: no price list",
  });
});

test("the stub has records for snapshots, fresh endpoints, and prices from the placement", async () => {
  const extension = new SaasStubExtension();
  const backend = new ExtensionBackend(extension);
  expect(backend.capabilities).toMatchObject({ snapshot: "metadata", filesystemSnapshot: false, files: false });
  const placement = { price_per_hour: "0.25", currency: "USD" };
  const request = requestFor({ placement });
  expect(await backend.estimateCost(request)).toEqual({ perHour: 0.25, currency: "USD" });
  expect(await errorCode(backend.acquire(requestFor({ placement: { price_per_hour: "much" } })))).toBe("bad_request");

  const handle = await backend.acquire(request);
  const payload = await handle.snapshot(folder, { mode: "filesystem", leaveRunning: true });
  expect(payload).toMatchObject({ kind: "stub-metadata", members: [] });
  const { record } = payload.requirements as { record: Record<string, string> };
  expect(record["endpoint"]).toMatch(/^https:\/\/stub\.invalid\//);
  await handle.ping();

  const stored = await throughStore(payload, folder);
  const copy = await backend.acquireFromSnapshot(requestFor({ placement }), stored);
  await copy.ping();
  const restored = await extension.restoreFromSnapshot(requestFor(), { record, members: [] });
  expect(restored["endpoint"]).toMatch(/^https:\/\/stub\.invalid\//);
  expect(restored["endpoint"]).not.toBe(record["endpoint"]);
  expect(restored["restored_from"]).toBe(record["snapshot_id"]);
  const foreign = { ...stored, kind: "workspace-tar" } as const;
  expect(await errorCode(backend.acquireFromSnapshot(requestFor(), foreign))).toBe("image_incompatible");
  await backend.close();
});
