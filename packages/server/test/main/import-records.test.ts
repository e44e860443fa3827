import { randomUUID } from "node:crypto";
import { readdir, writeFile } from "node:fs/promises";
import { hostname } from "node:os";
import { join } from "node:path";
import { pino } from "pino";
import { expect, onTestFinished, test } from "vitest";
import { SnapshotFile } from "../../src/checkpoints/snapshot-file.ts";
import { SnapshotRepository } from "../../src/checkpoints/snapshot-repository.ts";
import { announcement } from "../../src/checkpoints/snapshot-save.ts";
import { Instances } from "../../src/lease/instances.ts";
import { KeyClaims } from "../../src/lease/key-claims.ts";
import { Ownership } from "../../src/lease/ownership.ts";
import { importRecords, importSnapshots } from "../../src/main/import-records.ts";
import { openStore } from "../../src/store/open-store.ts";
import { systemClock } from "../../src/support/clock.ts";
import { newSnapshot } from "../checkpoints/snapshot-samples.ts";
import { temporaryFolder } from "../../../../test/kit/temporary-folder.ts";

const STOPPED_AT = "2026-01-02T00:00:00.000Z";
/** As releases before heads for every sandbox wrote it. */
const OLD_RECORD = {
  backend: "docker",
  spec: { env: {}, resources: {}, network: "none", labels: { team: "a" } },
  flags: {
    enable_checkpoint: false,
    enable_idle_timeout_auto_checkpoint: false,
    enable_sandbox_handoff: false,
    on_disconnect: "keep",
  },
  idle_timeout: 300,
  token_hash: "a".repeat(64),
  about: { name: "old", profile: null, key: "k", spec_hash: "h", expires_at: null, placement: null },
  lineage: { sandbox_id: null, checkpoint: null, filesystem_snapshot: null },
  createdAt: "2026-01-01T00:00:00.000Z",
  stopped_at: STOPPED_AT,
  holder: null,
};

async function openTargets() {
  const data = await temporaryFolder();
  const store = await openStore(join(data, "registry"));
  const instances = await Instances.register({
    store,
    clock: systemClock,
    ttlMs: 15_000,
    url: null,
    onFenced: () => {},
    onError: () => {},
  });
  onTestFinished(() => instances.close());
  const ownership = new Ownership(instances);
  const claims = new KeyClaims(store);
  const run = () => importRecords(data, { store, ownership, claims }, pino({ level: "silent" }));
  return { data, store, ownership, claims, run };
}

test("sandboxes and keys of the files get heads and claims, once", async () => {
  const { data, ownership, claims, run } = await openTargets();
  const sandboxId = randomUUID();
  await writeFile(join(data, "sandboxes.json"), JSON.stringify({ format: 1, sandboxes: { [sandboxId]: OLD_RECORD } }));
  await writeFile(join(data, "acquire-keys.json"), JSON.stringify({ format: 1, claims: [["k", sandboxId]] }));
  await run();
  const head = await ownership.read(sandboxId);
  expect(head).toMatchObject({
    owner: null,
    state: "parked",
    residence: "provider",
    stopped_at: STOPPED_AT,
    backend: "docker",
    spec: OLD_RECORD.spec,
    token_hash: OLD_RECORD.token_hash,
    about: { name: "old", key: "k" },
    createdAt: OLD_RECORD.createdAt,
  });
  expect(await claims.get("k")).toBe(sandboxId);
  const left = await readdir(data);
  expect(left).toContain("sandboxes.json.imported");
  expect(left).toContain("acquire-keys.json.imported");
  expect(left).not.toContain("sandboxes.json");
  await run();
  expect(await ownership.read(sandboxId)).toEqual(head);
});

test("a sandbox that a live server of the old release runs is left to it", async () => {
  const { data, ownership, run } = await openTargets();
  const { createServer } = await import("node:http");
  const living = createServer((_, response) => response.end("ok")).listen(0, "127.0.0.1");
  onTestFinished(() => void living.close());
  await new Promise((resolve) => living.once("listening", resolve));
  const { port } = living.address() as { port: number };
  const [held, orphan] = [randomUUID(), randomUUID()];
  const holder = { url: `http://127.0.0.1:${port}`, host: hostname(), pid: process.pid };
  // No process has this number.
  const dead = { ...holder, pid: 2 ** 22 + 1 };
  const sandboxes = {
    [held]: { ...OLD_RECORD, stopped_at: null, holder },
    [orphan]: { ...OLD_RECORD, stopped_at: null, holder: dead },
  };
  await writeFile(join(data, "sandboxes.json"), JSON.stringify({ format: 1, sandboxes }));
  await run();
  expect(await ownership.read(held)).toBeUndefined();
  expect(await ownership.read(orphan)).toMatchObject({ owner: null, stopped_at: expect.any(String) });
  living.closeAllConnections();
  await new Promise((resolve) => living.close(resolve));
  await run();
  expect(await ownership.read(held)).toMatchObject({ owner: null, residence: "provider" });
});

test("the cells of a bucket get heads too", async () => {
  const { store, ownership, run } = await openTargets();
  const sandboxId = randomUUID();
  const key = `outliving-sandboxes/${sandboxId}.json`;
  await store.swapCell(key, undefined, Buffer.from(JSON.stringify(OLD_RECORD)));
  await run();
  expect(await ownership.read(sandboxId)).toMatchObject({ residence: "provider", stopped_at: STOPPED_AT });
  expect(await store.readCell(key)).toBeUndefined();
});

test("snapshots that were recorded only in the file are in the registry, with name and pin", async () => {
  const { data, store } = await openTargets();
  const file = new SnapshotFile(join(data, "snapshots.json"));
  const record = {
    ...announcement(newSnapshot({ name: "base" }), ""),
    state: "ready" as const,
    kind: "stub-metadata",
    requirements: { extension: "saas-stub", record: {} },
    pinned: true,
  };
  await file.put(record.id, record);
  const library = new SnapshotRepository(store, { publisher: () => "this-server", keepsBytes: false });
  await importSnapshots(file, library);
  expect(await library.get("base")).toMatchObject({ id: record.id, state: "ready", pinned: true });
  const state = await library.load(record.id, await temporaryFolder());
  expect(state).toMatchObject({ kind: "stub-metadata", requirements: record.requirements });
});
