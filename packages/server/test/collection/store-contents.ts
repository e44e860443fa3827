import { randomUUID } from "node:crypto";
import type { Head } from "@sandboxer/protocol";
import fc from "fast-check";
import { checkpointKey, checkpointName, removalMarkName } from "../../src/checkpoints/checkpoint-names.ts";
import { encodeHead } from "../../src/lease/head-codec.ts";
import { newHead } from "../../src/lease/head.ts";
import { deadRecord, encodeRecord, instanceKey, liveRecord } from "../../src/lease/liveness-record.ts";
import { headKey } from "../../src/lease/stored-head.ts";
import type { ObjectStore } from "../../src/store/store.ts";
import { checkpoint, newSandbox } from "../lease/samples.ts";

/** A sandbox in a store, as it may be found. */
export interface Contents {
  readonly state: "live" | "parked" | "deleted" | "headless" | "damaged";
  readonly owner: "living" | "dead" | "unknown";
  readonly images: readonly number[];
  readonly marks: readonly number[];
  /** The index of the head's image; beyond the end: none, or a missing one. */
  readonly headIndex: number;
  readonly headIsMissing: boolean;
}

export const contentsArbitrary: fc.Arbitrary<Contents> = fc.record({
  state: fc.constantFrom("live", "parked", "deleted", "headless", "damaged"),
  owner: fc.constantFrom("living", "dead", "unknown"),
  images: fc.uniqueArray(fc.integer({ min: 1, max: 20 }), { maxLength: 6 }),
  marks: fc.uniqueArray(fc.integer({ min: 1, max: 20 }), { maxLength: 2 }),
  headIndex: fc.nat({ max: 7 }),
  headIsMissing: fc.boolean(),
});

export interface PlantedSandbox {
  readonly id: string;
  readonly contents: Contents;
  readonly head: Head | undefined;
}

/** Writes records of a living and a dead server, and the sandboxes. */
export async function plantContents(store: ObjectStore, all: readonly Contents[]): Promise<readonly PlantedSandbox[]> {
  const owners = { living: randomUUID(), dead: randomUUID(), unknown: randomUUID() };
  await store.swapCell(instanceKey(owners.living), undefined, encodeRecord(liveRecord(null, 1, 15_000)));
  await store.swapCell(instanceKey(owners.dead), undefined, encodeRecord(deadRecord(owners.living)));
  const planted: PlantedSandbox[] = [];
  for (const contents of all) {
    const id = randomUUID();
    const head = headOf(contents, owners[contents.owner]);
    for (const number of contents.images) await store.writeText(checkpointKey(id, checkpointName(number)), "image");
    for (const number of contents.marks) await store.writeText(checkpointKey(id, removalMarkName(number)), "mark");
    await store.writeText(checkpointKey(id, "latest"), "checkpoint_1.img\n");
    if (head !== undefined) await store.swapCell(headKey(id), undefined, encodeHead(head));
    if (contents.state === "damaged") await store.swapCell(headKey(id), undefined, Buffer.from("{"));
    planted.push({ id, contents, head });
  }
  return planted;
}

function headOf({ state, images, headIndex, headIsMissing }: Contents, owner: string): Head | undefined {
  if (state === "headless" || state === "damaged") return undefined;
  const number = images[headIndex] ?? (headIsMissing ? 99 : undefined);
  const head = newHead(owner, newSandbox(), { nonce: randomUUID(), now: "2026-11-15T05:00:00.000Z" });
  return {
    ...head,
    state,
    owner: state === "live" ? owner : null,
    checkpoint: number === undefined || state === "deleted" ? null : checkpoint(number),
  };
}
