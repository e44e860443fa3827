import { randomUUID } from "node:crypto";
import { mkdtemp, rm } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { expect, onTestFinished, test } from "vitest";
import type { OutlivingRecord } from "../../src/records/sandbox-records.ts";
import { StoreSandboxRecords } from "../../src/records/store-sandbox-records.ts";
import { AmbiguousWriteError, type ObjectStore } from "../../src/store/store.ts";
import { openStore } from "../../src/store/open-store.ts";

const ID = randomUUID();
const RECORD: OutlivingRecord = {
  backend: "fake",
  spec: {},
  flags: {
    enable_checkpoint: false,
    enable_idle_timeout_auto_checkpoint: false,
    enable_sandbox_handoff: false,
    on_disconnect: "keep",
  },
  idle_timeout: 300,
  token_hash: null,
  lineage: { sandbox_id: null, checkpoint: null, filesystem_snapshot: null },
  createdAt: "2026-01-01T00:00:00.000Z",
  stopped_at: "2026-01-02T00:00:00.000Z",
  holder: null,
};

async function temporaryStore(): Promise<ObjectStore> {
  const folder = await mkdtemp(join(tmpdir(), "sandboxer-records-"));
  onTestFinished(() => rm(folder, { recursive: true, force: true }));
  return openStore(folder);
}

async function readBack(records: StoreSandboxRecords): Promise<OutlivingRecord> {
  const found = await records.get(ID);
  if (found === undefined) throw new Error("it was put");
  return found;
}

test("of several servers that swap what they have read one succeeds", async () => {
  const store = await temporaryStore();
  const records = new StoreSandboxRecords(store);
  await records.put(ID, RECORD);
  const read = await readBack(records);
  const claims = ["a", "b", "c"].map((host) => ({ ...read, stopped_at: null, holder: { url: null, host, pid: 1 } }));
  const swaps = claims.map((claim) => new StoreSandboxRecords(store).swap(ID, read, claim));
  const outcomes = await Promise.all(swaps);
  expect(outcomes.filter(Boolean)).toHaveLength(1);
  const won = claims[outcomes.indexOf(true)] ?? read;
  expect(await readBack(records)).toEqual(won);
  expect([...(await records.list()).keys()]).toEqual([ID]);
  await records.remove(ID);
  expect(await records.swap(ID, won, read)).toBe(false);
  expect((await records.list()).size).toBe(0);
});

test("a swap of which nobody knows what became of it is looked for", async () => {
  const store = await temporaryStore();
  const before = new StoreSandboxRecords(store);
  await before.put(ID, RECORD);
  const read = await readBack(before);
  const lostAnswer = new Proxy(store, {
    get: (target, name) => {
      const method = Reflect.get(target, name) as (...args: unknown[]) => Promise<unknown>;
      if (name !== "swapCell") return method.bind(target);
      return async (...args: unknown[]) => {
        await Reflect.apply(method, target, args);
        throw new AmbiguousWriteError(ID, new Error("no answer"));
      };
    },
  });
  const claim = { ...read, stopped_at: null, holder: { url: null, host: "a", pid: 1 } };
  expect(await new StoreSandboxRecords(lostAnswer).swap(ID, read, claim)).toBe(true);
  expect(await readBack(before)).toEqual(claim);
});
