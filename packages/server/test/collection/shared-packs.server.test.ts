import { writeFile } from "node:fs/promises";
import { expect, it } from "vitest";
import type { SnapshotPayload } from "../../src/backends/backend.ts";
import { checkpointKey } from "../../src/checkpoints/checkpoint-names.ts";
import { CheckpointRepository } from "../../src/checkpoints/checkpoint-repository.ts";
import { ImageStore } from "../../src/checkpoints/image-store.ts";
import { collectGarbage } from "../../src/collection/collect-garbage.ts";
import { contentsOf, savedState } from "../checkpoints/saved-states.ts";
import { FakeClock } from "../lease/fake-clock.ts";
import { newSandbox } from "../lease/samples.ts";
import { at, twoInstances } from "../lease/test-instances.ts";
import { collect } from "../store/store-contract.ts";
import { temporaryFolder } from "../../../../test/kit/temporary-folder.ts";

const MIB = 1024 * 1024;

async function changed(state: SnapshotPayload, sizeBytes: number): Promise<SnapshotPayload> {
  const other = await savedState({ more: sizeBytes });
  return { ...state, members: [...state.members, ...other.members] };
}

it("frees the packs that only old images need, previews that, and keeps shared ones", async () => {
  const { a, store, id } = await twoInstances();
  const checkpoints = new CheckpointRepository(store, new ImageStore(store, { publisher: () => a.name }));
  const packs = async () => await collect(store.list("packs"));
  const bytesOf = (items: readonly { sizeBytes: number }[]): number =>
    items.reduce((sum, each) => sum + each.sizeBytes, 0);
  await a.create(id, newSandbox());
  const shared = await savedState({ memory: MIB });
  const first = await checkpoints.save(id, await changed(shared, 2 * MIB), { wallMs: 1, parent: null });
  await a.publish(at(id), first);
  const own = await savedState({ alone: 3 * MIB });
  const second = await checkpoints.save(id, own, { wallMs: 2, parent: null });
  await a.publish(at(id), second);
  const third = await checkpoints.save(id, shared, { wallMs: 3, parent: first.name });
  await a.publishAndRelease(at(id), third);
  const before = await packs();
  const context = { store, clock: new FakeClock(), keep: { checkpoints: { keep_last: 1 } } };

  const foreseen = await collectGarbage({ ...context, apply: false });
  expect(await packs()).toEqual(before);
  const old = [first, second].map(({ name }) => checkpointKey(id, name));
  expect(await checkpoints.freedBytes(old)).toBe(bytesOf(foreseen.garbage));
  expect(await checkpoints.freedBytes([])).toBe(0);
  const foreseenPacks = foreseen.garbage.filter(({ kind }) => kind === "pack");
  expect(bytesOf(foreseenPacks)).toBeGreaterThan(3 * MIB);
  expect(await collectGarbage({ ...context, apply: true })).toEqual(foreseen);
  expect(bytesOf(before) - bytesOf(await packs())).toBe(bytesOf(foreseenPacks));
  expect(await packs()).not.toEqual([]);

  const restored = await checkpoints.load(id, third.name, await temporaryFolder());
  expect(await contentsOf(restored)).toEqual(await contentsOf(shared));
  await a.destroy(id);
  await collectGarbage({ ...context, apply: true });
  expect(await packs()).toEqual([]);
  expect(await collect(store.list("pins"))).toEqual([]);
});

it("removes no pack while there is an image that it cannot read", async () => {
  const { a, store, root, id } = await twoInstances();
  const checkpoints = new CheckpointRepository(store, new ImageStore(store, { publisher: () => a.name }));
  await a.create(id, newSandbox());
  const saved = await checkpoints.save(id, await savedState({ memory: MIB }), { wallMs: 1, parent: null });
  await a.publishAndRelease(at(id), saved);
  const before = await collect(store.list("packs"));
  expect(before).not.toEqual([]);
  await writeFile(`${root}/${id}/checkpoints/${saved.name}`, "no image");
  const other = await checkpoints.save(id, await savedState({ memory: MIB }), { wallMs: 2, parent: null });
  const key = checkpointKey(id, other.name);
  expect(await checkpoints.freedBytes([key])).toBe((await store.stat(key))?.sizeBytes);
  await store.delete(key);
  const present = await collect(store.list("packs"));
  const findings = await collectGarbage({ store, clock: new FakeClock(), apply: true, keep: {} });
  expect(findings.left).toContainEqual({
    key: `${id}/checkpoints/${saved.name}`,
    reason: "its packs are unknown",
  });
  expect(await collect(store.list("packs"))).toEqual(present);
});
