import fc from "fast-check";
import { expect, it } from "vitest";
import {
  checkpointKey,
  checkpointMs,
  checkpointName,
  checkpointsFolder,
} from "../../src/checkpoints/checkpoint-names.ts";
import { collectGarbage } from "../../src/collection/collect-garbage.ts";
import { readHead } from "../../src/lease/stored-head.ts";
import { FakeClock } from "../lease/fake-clock.ts";
import { collect } from "../store/store-contract.ts";
import { MemoryStore } from "./memory-store.ts";
import { contentsArbitrary, type PlantedSandbox, plantContents } from "./store-contents.ts";

/** The expected store after a collection, computed in another way than the collector does. */
function mustStay({ id, contents, head }: PlantedSandbox, keepNewest: number | undefined): readonly string[] {
  const all = contents.images.map((number) => checkpointKey(id, checkpointName(number)));
  const { state, owner, images } = contents;
  if (state === "deleted") return [];
  const untouchable = state === "headless" || state === "damaged" || (state === "live" && owner !== "dead");
  const headMs = head?.checkpoint === null ? undefined : checkpointMs(head?.checkpoint?.name ?? "");
  if (untouchable || (headMs !== undefined && !images.includes(headMs))) return all;
  const published = images.filter((number) => number <= (headMs ?? -1)).toSorted((a, b) => b - a);
  return published.slice(0, keepNewest ?? Infinity).map((number) => checkpointKey(id, checkpointName(number)));
}

const keepArbitrary = fc.option(fc.integer({ min: 1, max: 4 }), { nil: undefined });

it("removes exactly the unreferenced data, whatever is in the store", async () => {
  const property = fc.asyncProperty(
    fc.array(contentsArbitrary, { maxLength: 5 }),
    keepArbitrary,
    async (contents, keepNewest) => {
      const store = new MemoryStore();
      const planted = await plantContents(store, contents);
      const before = await collect(store.list(""));
      const context = {
        store,
        clock: new FakeClock(),
        keep: keepNewest === undefined ? {} : { checkpoints: { keep_last: keepNewest } },
      };

      const foreseen = await collectGarbage({ ...context, apply: false });
      expect(await collect(store.list(""))).toEqual(before);
      const removed = await collectGarbage({ ...context, apply: true });
      expect(removed).toEqual(foreseen);

      for (const sandbox of planted) {
        const images = (await collect(store.list(checkpointsFolder(sandbox.id)))).map(({ key }) => key);
        const stayed = images.filter((key) => key.endsWith(".img"));
        expect(stayed.toSorted()).toEqual([...mustStay(sandbox, keepNewest)].toSorted());
        if (sandbox.contents.state === "deleted") expect(images).toEqual([]);
        const after = sandbox.head === undefined ? undefined : await readHead(store, sandbox.id);
        expect(after?.checkpoint).toEqual(sandbox.head?.checkpoint);
        expect(after?.state === "deleted").toBe(sandbox.head?.state === "deleted");
      }
      const present = new Set((await collect(store.list(""))).map(({ key }) => key));
      const gone = before.filter(({ key }) => !present.has(key));
      const reported = removed.garbage.map(({ key, sizeBytes }) => ({ key, sizeBytes }));
      expect(reported).toHaveLength(gone.length);
      expect(reported).toEqual(expect.arrayContaining(gone));
      const again = await collectGarbage({ ...context, apply: true });
      expect(again.garbage.filter(({ kind }) => kind !== "server-record")).toEqual([]);
    },
  );
  await fc.assert(property, { numRuns: 300 });
});
