import { randomUUID } from "node:crypto";
import { setImmediate } from "node:timers/promises";
import { expect, it } from "vitest";
import { MemoryStore } from "../collection/memory-store.ts";
import { FakeClock } from "./fake-clock.ts";
import { newSandbox } from "./samples.ts";
import { instance } from "./test-instances.ts";

function bellWith(wanted: readonly string[] | undefined): Buffer {
  return Buffer.from(JSON.stringify({ format: 1, nonce: randomUUID(), wanted }));
}

/** A server that owns sandboxes, and another one that waits for one of them; the clocks stand still. */
async function owned(count: number) {
  const [store, ownerClock, clock] = [new MemoryStore(), new FakeClock(), new FakeClock()];
  const owner = await instance(store, { clock: ownerClock });
  const newcomer = await instance(store, { clock });
  const ids = Array.from({ length: count }, () => randomUUID());
  for (const id of ids) await owner.create(id, newSandbox(), { isFresh: true });
  const key = `bells/${owner.name}.json`;
  const wanted = async (): Promise<string[] | undefined> => {
    const cell = await store.readCell(key);
    return cell === undefined ? [] : (JSON.parse(Buffer.from(cell.body).toString()) as { wanted?: string[] }).wanted;
  };
  const claim = (id: string): void => {
    newcomer.claim(id, { handoffTimeoutMs: 60_000 }).catch(() => {});
  };
  return { store, owner, newcomer, ownerClock, clock, ids, key, wanted, claim };
}

it("an owner that nobody can call hears of a request by its bell", async () => {
  const { owner, newcomer, ownerClock, clock, ids, wanted } = await owned(1);
  const [id = ""] = ids;
  owner.instances.listen({ onWanted: (sandboxId) => void owner.release({ id: sandboxId, epoch: 1 }) });
  const claim = newcomer.claim(id, { handoffTimeoutMs: 60_000 });
  await expect.poll(wanted).toEqual([id]);
  expect(owner.held(id)).toBeDefined();
  // A fifteenth of a ttl is the time between two looks at its own bell, and far less than that between looks at a head.
  ownerClock.advance(1_000);
  await expect.poll(() => owner.held(id)).toBeUndefined();
  clock.advance(1_000);
  expect(await claim).toMatchObject({ owner: newcomer.name, epoch: 2 });
});

it("a server that rings at the same time as another is named too, before its next ring", async () => {
  const { store, clock, ids, key, wanted, claim } = await owned(1);
  const [other, swapCell] = [randomUUID(), store.swapCell.bind(store)];
  let isFirst = true;
  store.swapCell = async (swapped, expected, body) => {
    if (swapped === key && isFirst) {
      isFirst = false;
      await swapCell(key, expected, bellWith([other]));
    }
    return await swapCell(swapped, expected, body);
  };
  claim(ids[0] ?? "");
  await expect.poll(() => isFirst).toBe(false);
  // Far less than the time between two rings.
  for (let turn = 0; turn < 20; turn++) {
    clock.advance(1);
    await setImmediate();
  }
  expect((await wanted())?.toSorted()).toEqual([ids[0], other].toSorted());
});

it("an unread ring of an earlier release still requests everything after another ring", async () => {
  const { store, owner, ownerClock, ids, key, wanted, claim } = await owned(2);
  await store.swapCell(key, undefined, bellWith(undefined));
  const before = (await store.readCell(key))?.version;
  const [id = "", unnamed = ""] = ids;
  claim(id);
  await expect.poll(async () => (await store.readCell(key))?.version === before).toBe(false);
  expect(await wanted()).toBeUndefined();
  const reads = new Set<string>();
  const readCell = store.readCell.bind(store);
  store.readCell = async (read) => {
    reads.add(read);
    return await readCell(read);
  };
  ownerClock.advance(1_000);
  await expect.poll(() => [...reads].some((read) => read.includes(unnamed))).toBe(true);
  // The owner has heard it: rings are named again.
  await expect.poll(wanted).toEqual([]);
  await owner.release({ id, epoch: 1 });
});
