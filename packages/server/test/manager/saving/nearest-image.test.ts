import { randomUUID } from "node:crypto";
import { beforeEach, describe, expect, it } from "vitest";
import { CheckpointRepository } from "../../../src/checkpoints/checkpoint-repository.ts";
import { imageKey } from "../../../src/checkpoints/snapshot-record.ts";
import { nearestImage, noteImage } from "../../../src/manager/saving/nearest-image.ts";
import { MemoryStore } from "../../collection/memory-store.ts";

const id = randomUUID();
const origin = randomUUID();
let store: MemoryStore;
let context: Parameters<typeof nearestImage>[0];
let sandbox: Parameters<typeof nearestImage>[1] & { newestImages: readonly string[] };

async function snapshot(): Promise<string> {
  const key = imageKey(randomUUID());
  await store.write(key, [Buffer.from("image")]);
  noteImage(sandbox, key);
  return key;
}

beforeEach(() => {
  store = new MemoryStore();
  context = { options: { durable: { checkpoints: new CheckpointRepository(store) } as never } };
  sandbox = {
    id,
    newestImages: [],
    parentCheckpoint: null,
    facts: { lineage: { snapshot: origin } } as never,
  };
});

describe("the image that a save is written against", () => {
  it("is the newest image of the sandbox, or the one that it was restored from", async () => {
    expect(await nearestImage(context, sandbox)).toBe(imageKey(origin));
    sandbox = { ...sandbox, parentCheckpoint: "checkpoint_1.img" };
    expect(await nearestImage(context, sandbox)).toBe(`${id}/checkpoints/checkpoint_1.img`);
    await snapshot();
    const newest = await snapshot();
    expect(await nearestImage(context, sandbox)).toBe(newest);
  });

  it("is the next one where the newest was deleted", async () => {
    const [first, second, third] = [await snapshot(), await snapshot(), await snapshot()];
    await store.delete(third);
    expect(await nearestImage(context, sandbox)).toBe(second);
    await store.delete(second);
    expect(await nearestImage(context, sandbox)).toBe(first);
    await store.delete(first);
    expect(await nearestImage(context, sandbox)).toBe(imageKey(origin));
  });
});
