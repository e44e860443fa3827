import { randomUUID } from "node:crypto";
import fc from "fast-check";
import { describe, expect, it } from "vitest";
import type { SnapshotPayload } from "../../src/backends/backend.ts";
import { snapshotKey } from "../../src/checkpoints/snapshot-record.ts";
import { SnapshotRepository } from "../../src/checkpoints/snapshot-repository.ts";
import { collectGarbage } from "../../src/collection/collect-garbage.ts";
import { encodeHead } from "../../src/lease/head-codec.ts";
import { newHead } from "../../src/lease/head.ts";
import { deadRecord, encodeRecord, instanceKey, liveRecord } from "../../src/lease/liveness-record.ts";
import { headKey } from "../../src/lease/stored-head.ts";
import type { ObjectStore } from "../../src/store/store.ts";
import { FakeClock } from "../lease/fake-clock.ts";
import { newSandbox } from "../lease/samples.ts";
import { collect } from "../store/store-contract.ts";
import { MemoryStore } from "./memory-store.ts";
import { withoutCondemning } from "./planted-bugs.ts";
import { type Burst, Turns } from "./turns.ts";

const burstsArbitrary = fc.array(fc.record({ actor: fc.nat({ max: 2 }), steps: fc.integer({ min: 1, max: 30 }) }), {
  maxLength: 16,
});

function state(): SnapshotPayload {
  return { kind: "fake-state", members: [], requirements: { nonce: randomUUID() } };
}

/** A store with a sandbox, its server, and a snapshot of it. */
async function aStore(serverRecord: Uint8Array) {
  const [store, sandboxId, serverId] = [new MemoryStore(), randomUUID(), randomUUID()];
  const head = newHead(serverId, newSandbox(), { nonce: randomUUID(), now: "2026-11-15T05:00:00.000Z" });
  await store.swapCell(headKey(sandboxId), undefined, encodeHead(head));
  await store.swapCell(instanceKey(serverId), undefined, serverRecord);
  const options = { wallMs: 1, sandboxId };
  await new SnapshotRepository(store).save("base", state(), options);
  return { store, options };
}

const DEAD = encodeRecord(deadRecord("somebody"));
const LIVING = encodeRecord(liveRecord(null, 1, 15_000));

/** Two savers that are dead to the others and do not know, and a collector. */
async function play(bursts: readonly Burst[], plant: (store: ObjectStore) => ObjectStore): Promise<void> {
  const { store, options } = await aStore(DEAD);
  const turns = new Turns();
  const saved: string[] = [];
  const saves = (actor: number) => async (): Promise<void> => {
    try {
      const { image } = await new SnapshotRepository(turns.storeOf(actor, store)).save("base", state(), options);
      saved.push(image);
    } catch (error) {
      expect(error).toMatchObject({ code: expect.stringMatching(/^(checkpoint_failed|image_damaged)$/) });
    }
  };
  const collects = async (): Promise<void> => {
    const clock = new FakeClock();
    await collectGarbage({ store: plant(turns.storeOf(2, store)), clock, apply: true, keepNewest: undefined });
  };
  const snapshots = new SnapshotRepository(store);
  await turns.run([saves(0), saves(1), collects], bursts, async () => {
    const image = (await snapshots.get("base"))?.image ?? "";
    if (!store.has(snapshotKey("base", image))) throw new Error(`The record names ${image}, which is gone.`);
  });
  const record = await snapshots.get("base");
  expect([record?.image, ...(record?.history ?? [])]).toEqual(expect.arrayContaining(saved));
}

describe("images of filesystem snapshots", () => {
  it("stay while a record names them, whoever saves meanwhile", { timeout: 60_000 }, async () => {
    await fc.assert(
      fc.asyncProperty(burstsArbitrary, async (bursts) => await play(bursts, (store) => store)),
      { numRuns: 200 },
    );
  });

  it("a collector that does not tell the record is caught", { timeout: 60_000 }, async () => {
    const planted = fc.asyncProperty(burstsArbitrary, async (bursts) => await play(bursts, withoutCondemning));
    const { failed, errorInstance } = await fc.check(planted, { numRuns: 3_000, endOnFailure: true, seed: 7 });
    expect(failed).toBe(true);
    expect(String(errorInstance)).toContain("which is gone");
  });

  it.each([
    ["stay while the server that saved them has the sandbox", LIVING, 2],
    ["go when that server is dead", DEAD, 1],
  ])("that nobody published %s", async (_, serverRecord, remaining) => {
    const { store } = await aStore(serverRecord);
    const image = `image_${randomUUID()}.img`;
    const [present] = (await collect(store.list("filesystem-snapshots"))).filter(({ key }) => key.endsWith(".img"));
    await store.write(snapshotKey("base", image), store.read(present?.key ?? ""));
    await collectGarbage({ store, clock: new FakeClock(), apply: true, keepNewest: undefined });
    const images = (await collect(store.list("filesystem-snapshots"))).filter(({ key }) => key.endsWith(".img"));
    expect(images).toHaveLength(remaining);
    expect(images).toContainEqual(present);
  });

  it("of a first save stay, because there is no record that could say so", async () => {
    const { store, options } = await aStore(DEAD);
    await new SnapshotRepository(store).save("other", state(), options);
    await store.deleteCell(snapshotKey("other", "record.json"));
    const { garbage, left } = await collectGarbage({
      store,
      clock: new FakeClock(),
      apply: true,
      keepNewest: undefined,
    });
    expect(garbage).toEqual([]);
    expect(left).toContainEqual({ key: snapshotKey("other", "record.json"), reason: "a save may be under way" });
  });
});
