import { randomUUID } from "node:crypto";
import { existsSync } from "node:fs";
import { join } from "node:path";
import { expect, it } from "vitest";
import { CheckpointRepository } from "../../src/checkpoints/checkpoint-repository.ts";
import { collectGarbage } from "../../src/collection/collect-garbage.ts";
import type { GarbageKind } from "../../src/collection/garbage.ts";
import { bytes, collect } from "../store/store-contract.ts";
import { savedState } from "../checkpoints/saved-states.ts";
import { newSandbox } from "../lease/samples.ts";
import { at, instance, twoInstances } from "../lease/test-instances.ts";
import { FakeClock } from "../lease/fake-clock.ts";

/** A clock that does not make anybody wait. */
class ImpatientClock extends FakeClock {
  override async sleep(ms: number): Promise<void> {
    this.stall(ms);
  }
}

it("keeps the referenced data of a store in use, and reports the freed bytes", async () => {
  const { a, b, store, root, id } = await twoInstances();
  const checkpoints = new CheckpointRepository(store);
  const state = await savedState({ memory: 5000 });
  const save = async (sandboxId: string) => await checkpoints.save(sandboxId, state, { wallMs: 1, parent: null });

  const destroyed = randomUUID();
  await a.create(destroyed, newSandbox());
  await a.publish(at(destroyed), await save(destroyed));
  await a.destroy(destroyed);
  const inUse = randomUUID();
  await b.create(inUse, newSandbox());
  await save(inUse);
  await a.create(id, newSandbox());
  const published = [await save(id), await save(id), await save(id)] as const;
  await a.publish(at(id), published[2]);
  const unpublished = await save(id);
  await b.instances.markDead(a.name);
  const gone = await instance(store);
  await gone.instances.close();
  await store.swapCell(`bells/${gone.name}.json`, undefined, bytes("{}"));
  await store.swapCell(`probe-${randomUUID()}/cell.json`, undefined, bytes("{}"));

  const context = { store, clock: new ImpatientClock(), apply: true, keep: { checkpoints: { keep_last: 2 } } };
  const { garbage, left } = await collectGarbage(context);
  const counts: Record<GarbageKind, number> = {
    destroyed: 1,
    "lost-sandbox": 0,
    unpublished: 1,
    "past-retention": 1,
    "removal-mark": 0,
    snapshot: 0,
    "old-snapshot": 0,
    pack: 0,
    pin: 0,
    verdict: 0,
    "data-key": 0,
    "server-record": 1,
    bell: 1,
    probe: 1,
  };
  for (const [kind, count] of Object.entries(counts))
    expect(garbage.filter((item) => item.kind === kind)).toHaveLength(count);
  expect(garbage.find(({ kind }) => kind === "unpublished")?.sizeBytes).toBe(unpublished.size_bytes);
  expect(left).toEqual([{ key: inUse, reason: "owned by a living server" }]);

  expect((await checkpoints.list(id)).map(({ name }) => name)).toEqual([published[2].name, published[1].name]);
  expect(await checkpoints.list(inUse)).toHaveLength(1);
  expect(await collect(store.listCells("instances"))).toHaveLength(2);
  expect(existsSync(join(root, "instances", `.${gone.name}`))).toBe(false);
  expect(await collect(store.listCells("bells"))).toEqual([]);
  await expect(b.claim(destroyed)).rejects.toMatchObject({ code: "sandbox_destroyed" });

  const head = await b.claim(id);
  expect(head).toMatchObject({ epoch: 3, checkpoint: published[2] });
  const next = await save(id);
  expect(next.name).not.toBe(unpublished.name);
  await b.publishAndRelease(at(id, head.epoch), next);
  const after = await collectGarbage(context);
  expect(after.garbage.map(({ kind }) => kind).toSorted()).toEqual(["past-retention", "removal-mark", "server-record"]);
});
