import { randomUUID } from "node:crypto";
import { mkdir, writeFile } from "node:fs/promises";
import { join } from "node:path";
import { expect, it } from "vitest";
import type { ObjectStore } from "../../src/store/store.ts";
import { collect } from "../store/store-contract.ts";
import { FaultyStore } from "./faulty-store.ts";
import { checkpoint, newSandbox } from "./samples.ts";
import { at, instance, twoInstances } from "./test-instances.ts";

/** Somebody who is not the owner changes the head as far as others may: it asks for the sandbox. */
async function ask(store: ObjectStore, id: string, nonce: string): Promise<void> {
  const key = `${id}/metadata.json`;
  const cell = await store.readCell(key);
  const head = JSON.parse(Buffer.from(cell?.body ?? []).toString()) as { nonce: string; history: string[] };
  const next = { ...head, want: { instance_id: "z" }, nonce, history: [head.nonce, ...head.history].slice(0, 8) };
  const result = await store.swapCell(key, cell?.version, Buffer.from(JSON.stringify(next)));
  expect(result.outcome).toBe("written");
}

it("moves from owner to owner with its checkpoint", async () => {
  const { a, b, id } = await twoInstances();
  expect(await a.create(id, newSandbox())).toMatchObject({ epoch: 1, owner: a.name, state: "live", checkpoint: null });
  await expect(b.create(id, newSandbox())).rejects.toMatchObject({ code: "wrong_state" });
  await expect(b.claim(id)).rejects.toMatchObject({
    code: "lease_held",
    message: expect.stringContaining(a.name) as unknown,
    details: { holder: a.name, epoch: 1 },
  });
  await a.publish(at(id), checkpoint(1));
  const released = await a.publishAndRelease(at(id), checkpoint(2));
  expect(released).toMatchObject({ owner: null, state: "parked", status: "checkpointed", checkpoint: checkpoint(2) });
  await expect(a.publish(at(id), checkpoint(3))).rejects.toMatchObject({ code: "lease_lost" });
  expect(await b.claim(id)).toMatchObject({ epoch: 2, owner: b.name, status: "running", checkpoint: checkpoint(2) });
  expect(await b.release(at(id, 2))).toMatchObject({ owner: null, checkpoint: checkpoint(2), status: "checkpointed" });
});

it("is claimed from a dead server, which then cannot publish", async () => {
  const { a, b, id } = await twoInstances();
  await a.create(id, newSandbox());
  await a.publish(at(id), checkpoint(1));
  await b.instances.markDead(a.name);
  expect(await b.claim(id)).toMatchObject({ epoch: 2, owner: b.name, checkpoint: checkpoint(1) });
  await expect(a.publish(at(id), checkpoint(9))).rejects.toMatchObject({
    code: "lease_lost",
    details: { holder: b.name, epoch: 2 },
  });
  expect(a.held(id)).toBeUndefined();
  expect(await b.read(id)).toMatchObject({ owner: b.name, checkpoint: checkpoint(1) });
});

it("is adopted by an owner that does not know of it", async () => {
  const { a, id } = await twoInstances();
  await a.create(id, newSandbox());
  a.forget(at(id));
  expect(a.held(id)).toBeUndefined();
  await expect(a.claim(id)).resolves.toMatchObject({ epoch: 2, owner: a.name });
});

it("has one winner when many claim at once", async () => {
  const { a, store, id } = await twoInstances();
  await a.create(id, newSandbox());
  await a.release(at(id));
  const claimants = await Promise.all(Array.from({ length: 8 }, async () => await instance(store)));
  const results = await Promise.allSettled(claimants.map(async (claimant) => await claimant.claim(id)));
  expect(results.filter(({ status }) => status === "fulfilled")).toHaveLength(1);
  for (const result of results)
    if (result.status === "rejected") expect(result.reason).toMatchObject({ code: "lease_held" });
  expect((await a.read(id))?.epoch).toBe(2);
});

it("keeps a tombstone after destruction", async () => {
  const { a, b, id } = await twoInstances();
  await a.create(id, newSandbox());
  await expect(b.destroy(id)).rejects.toMatchObject({ code: "lease_held" });
  await a.publishAndRelease(at(id), checkpoint(1));
  expect(await b.destroy(id)).toMatchObject({ state: "deleted", owner: null, checkpoint: null, epoch: 3 });
  expect(await b.destroy(id)).toMatchObject({ state: "deleted", epoch: 3 });
  await expect(a.claim(id)).rejects.toMatchObject({ code: "sandbox_destroyed" });
  await expect(a.create(id, newSandbox())).rejects.toMatchObject({ code: "wrong_state" });
  await expect(a.claim(randomUUID())).rejects.toMatchObject({ code: "sandbox_not_found" });
});

it("applies its move on top of a concurrent request for the sandbox", async () => {
  const { a, store, id } = await twoInstances();
  await a.create(id, newSandbox());
  await ask(store, id, "asked");
  expect(await a.publish(at(id), checkpoint(1))).toMatchObject({
    want: { instance_id: "z" },
    checkpoint: checkpoint(1),
  });
});

it.each(["lost_request", "lost_reply"] as const)("determines the outcome of each move after a %s", async (fault) => {
  const { store: inner, id } = await twoInstances();
  const faulty = new FaultyStore(inner);
  const a = await instance(faulty.store);
  const withFault = async <T>(move: () => Promise<T>): Promise<T> => {
    faulty.faults.push(fault, fault === "lost_request" ? "lost_request" : "none");
    const result = await move();
    faulty.faults.length = 0;
    return result;
  };
  expect(await withFault(async () => await a.create(id, newSandbox()))).toMatchObject({ epoch: 1, owner: a.name });
  expect(await withFault(async () => await a.publish(at(id), checkpoint(1)))).toMatchObject({
    checkpoint: checkpoint(1),
  });
  expect(await withFault(async () => await a.update(at(id), { status: "running" }))).toMatchObject({
    status: "running",
  });
  expect(await withFault(async () => await a.publishAndRelease(at(id), checkpoint(2)))).toMatchObject({ owner: null });
  expect(await withFault(async () => await a.claim(id))).toMatchObject({ epoch: 2, checkpoint: checkpoint(2) });
  expect(await withFault(async () => await a.destroy(id))).toMatchObject({ epoch: 3, state: "deleted" });
});

it.each(["lost_request", "lost_reply"] as const)(
  "does not call a move after a %s a failure while the head cannot be read",
  async (fault) => {
    const { b, store: inner, id } = await twoInstances();
    const faulty = new FaultyStore(inner);
    const a = await instance(faulty.store);
    await a.create(id, newSandbox());
    const read = inner.readCell.bind(inner);
    let unreadable = 2;
    inner.readCell = async (key) => {
      const cell = await read(key);
      const isHead = key === `${id}/metadata.json`;
      return isHead && cell !== undefined && unreadable-- > 0 ? { ...cell, body: Buffer.from("{{{") } : cell;
    };
    faulty.faults.push(fault);
    expect(await a.publishAndRelease(at(id), checkpoint(1))).toMatchObject({ owner: null, checkpoint: checkpoint(1) });
    expect(a.held(id)).toBeUndefined();
    unreadable = 0;
    expect(await b.claim(id)).toMatchObject({ epoch: 2, owner: b.name, checkpoint: checkpoint(1) });
  },
);

it("recognises its own write below later writes of others", async () => {
  const { store: inner, id } = await twoInstances();
  const faulty = new FaultyStore(inner);
  const a = await instance(faulty.store);
  await a.create(id, newSandbox());
  faulty.faults.push("lost_reply");
  // Between the lost reply and the look that follows, others ask.
  const read = inner.readCell.bind(inner);
  let looks = 0;
  inner.readCell = async (key) => {
    if (looks++ === 0) for (let number = 0; number < 5; number++) await ask(inner, id, `asked-${number}`);
    return await read(key);
  };
  const head = await a.publish(at(id), checkpoint(1));
  expect(head).toMatchObject({ checkpoint: checkpoint(1), want: { instance_id: "z" }, nonce: "asked-4" });
  expect(await a.publish(at(id), checkpoint(2))).toMatchObject({ checkpoint: checkpoint(2) });
});

it("cannot be harmed by a write that arrives late", async () => {
  const { store: inner, id } = await twoInstances();
  const faulty = new FaultyStore(inner);
  const a = await instance(faulty.store);
  await a.create(id, newSandbox());
  faulty.faults.push("late");
  await a.publish(at(id), checkpoint(1));
  await a.publish(at(id), checkpoint(2));
  await faulty.deliverLate();
  expect(await a.read(id)).toMatchObject({ checkpoint: checkpoint(2) });
  expect(await a.publish(at(id), checkpoint(3))).toMatchObject({ checkpoint: checkpoint(3) });
});

it("serialises the moves of one instance", async () => {
  const { a, id } = await twoInstances();
  await a.create(id, newSandbox());
  await Promise.all(Array.from({ length: 10 }, async (_, number) => await a.publish(at(id), checkpoint(number))));
  expect((await a.read(id))?.checkpoint).toEqual(checkpoint(9));
});

it("lists every sandbox, a headless and a damaged one included", async () => {
  const { a, root, id } = await twoInstances();
  await a.create(id, newSandbox());
  const imported = randomUUID();
  await mkdir(join(root, imported));
  await writeFile(join(root, imported, "metadata.json"), '{"status":"checkpointed"}');
  const damaged = randomUUID();
  await mkdir(join(root, damaged));
  await writeFile(join(root, damaged, "metadata.json"), "{{{");
  const listed = await collect(a.list());
  expect(listed.map(({ sandboxId }) => sandboxId).toSorted()).toEqual([id, imported, damaged].toSorted());
  expect(listed.find(({ sandboxId }) => sandboxId === id)?.head?.owner).toBe(a.name);
  expect(listed.find(({ sandboxId }) => sandboxId === imported)).toMatchObject({ head: undefined, error: undefined });
  expect(listed.find(({ sandboxId }) => sandboxId === damaged)?.error?.code).toBe("image_damaged");
});

it("gives a folder without a head one, with its checkpoint", async () => {
  const { a, b, root, id } = await twoInstances();
  await mkdir(join(root, id));
  const record = { status: "checkpointed", createdAt: "2026-01-01T00:00:00Z", idle_timeout: 17, note: "kept" };
  await writeFile(join(root, id, "metadata.json"), JSON.stringify(record));
  expect(await a.read(id)).toBeUndefined();
  const head = await a.create(id, { ...newSandbox(), checkpoint: checkpoint(7) });
  expect(head).toMatchObject({ epoch: 1, owner: a.name, checkpoint: checkpoint(7) });
  expect(head).toMatchObject({ createdAt: record.createdAt, idle_timeout: 17, note: "kept" });
  await expect(b.create(id, newSandbox())).rejects.toMatchObject({ code: "wrong_state" });
});
