import { randomUUID } from "node:crypto";
import type { Head } from "@sandboxer/protocol";
import { expect, it } from "vitest";
import { collectGarbage } from "../../src/collection/collect-garbage.ts";
import { encodeHead } from "../../src/lease/head-codec.ts";
import { newHead, type NewSandbox } from "../../src/lease/head.ts";
import { deadRecord, encodeRecord, instanceKey, liveRecord } from "../../src/lease/liveness-record.ts";
import { headKey, readHead } from "../../src/lease/stored-head.ts";
import { FakeClock } from "../lease/fake-clock.ts";
import { newSandbox } from "../lease/samples.ts";
import { MemoryStore } from "./memory-store.ts";

const NEVER_SAVED: NewSandbox = { ...newSandbox(), flags: { ...newSandbox().flags, enable_checkpoint: false } };

it("removes only the heads of sandboxes that died with their server", async () => {
  const store = new MemoryStore();
  const [living, dead] = [randomUUID(), randomUUID()];
  await store.swapCell(instanceKey(living), undefined, encodeRecord(liveRecord(null, 1, 15_000)));
  await store.swapCell(instanceKey(dead), undefined, encodeRecord(deadRecord(living)));
  const plant = async (owner: string, sandbox: NewSandbox): Promise<string> => {
    const id = randomUUID();
    const head: Head = newHead(owner, sandbox, { nonce: randomUUID(), now: "2026-11-15T05:00:00.000Z" });
    await store.swapCell(headKey(id), undefined, encodeHead(head));
    return id;
  };
  const lost = await plant(dead, NEVER_SAVED);
  const running = await plant(living, NEVER_SAVED);
  const kept = await plant(dead, { ...NEVER_SAVED, residence: "provider" });
  const savable = await plant(dead, newSandbox());
  const context = { store, clock: new FakeClock(), keep: {} };
  const foreseen = await collectGarbage({ ...context, apply: false });
  expect(foreseen.garbage).toMatchObject([{ kind: "lost-sandbox", key: headKey(lost) }]);
  const removed = await collectGarbage({ ...context, apply: true });
  expect(removed.garbage).toEqual(foreseen.garbage);
  expect(await readHead(store, lost)).toBeUndefined();
  for (const id of [running, kept, savable]) expect(await readHead(store, id)).toMatchObject({ epoch: 1 });
});
