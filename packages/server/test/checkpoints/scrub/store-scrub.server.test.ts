import { randomBytes } from "node:crypto";
import { rmSync } from "node:fs";
import { mkdir, readdir, rm, truncate, utimes } from "node:fs/promises";
import { basename, join } from "node:path";
import { expect, test } from "vitest";
import { ImageStore, type SavedImage } from "../../../src/checkpoints/image-store.ts";
import { PackCache } from "../../../src/checkpoints/packs/pack-cache.ts";
import type { ScrubOptions, ScrubResult } from "../../../src/checkpoints/scrub/store-scrub.ts";
import { type Clock, systemClock } from "../../../src/support/clock.ts";
import { temporaryFolder } from "../../../../../test/kit/temporary-folder.ts";
import { asText, BLOCK, flip, type ImageLab, openLab, stateOf, withNewPages } from "../block-image/block-images.ts";
import { packPlainImage } from "../plain-images.ts";

const NOTHING_NAMED = async () => new Map<string, string | undefined>();
const NAMED = async () => true;
const PACK_HEADER = 16;

const begin = ({ images }: ImageLab, options: Partial<ScrubOptions> = {}) =>
  images.scrub({ clock: systemClock, ...options });
const scrub = async (lab: ImageLab): Promise<ScrubResult> => await begin(lab).run(NOTHING_NAMED);

/** Random bytes, which are stored as they are: block 7 of the first pack is where it seems to be. */
async function family(lab: ImageLab) {
  const memory = randomBytes(12 * BLOCK);
  const first = await lab.save({ memory });
  const pack = ((await lab.packs())[0] ?? "").replace(".pack", "");
  const shares = await lab.save({ memory: withNewPages(memory, [0]) }, first);
  const changed = withNewPages(memory, [64 * 7]);
  const differs = await lab.save({ memory: changed }, first);
  const other = Buffer.from(memory);
  other.set(randomBytes(BLOCK), 7 * BLOCK);
  const without = await lab.save({ memory: other }, first);
  const unrelated = await lab.save({ memory: randomBytes(9 * BLOCK) });
  return { memory, changed, first, pack, shares, differs, without, unrelated };
}

const keys = (...images: SavedImage[]): Set<string> => new Set(images.map(({ key }) => key));

test("finds nothing in intact data, and reads each block once", async () => {
  const lab = await openLab();
  const { first, shares } = await family(lab);
  const result = await scrub(lab);
  expect(result.images).toEqual({ whole: 5, damaged: 0, unreadable: 0, missing: 0, locked: 0 });
  // 12 of the first, the changed one of the three that share them, 9 of the other.
  expect(result.blocks).toBe(12 + 3 + 9);
  expect([result.damagedBlocks, result.missingPacks, result.problems.size]).toEqual([[], [], 0]);
  const alone = await begin(lab).verify([first, shares], NAMED);
  expect(alone.blocks).toBe(13);
});

test("a damaged block names every image that needs it, even for a difference, and no other", async () => {
  const lab = await openLab();
  const { first, shares, differs, pack } = await family(lab);
  await flip(join(lab.root, "packs", `${pack}.pack`), PACK_HEADER + 7 * BLOCK + 5);
  const { images, damagedBlocks, problems } = await scrub(lab);
  const offset = PACK_HEADER + 7 * BLOCK;
  const hurt = keys(first, shares, differs);
  expect(damagedBlocks).toEqual([{ pack, offset, sizeBytes: BLOCK, problem: "its digest differs", images: hurt }]);
  expect(new Set(problems.keys())).toEqual(hurt);
  expect(images).toMatchObject({ whole: 2, damaged: 3 });
  expect(problems.get(first.key)).toEqual({ verdict: "damaged", problem: "1 of its blocks is damaged" });
});

test("damaged blocks are not named by later images, nor are differences to them", async () => {
  const lab = await openLab();
  const { first, differs, memory, changed, pack } = await family(lab);
  await flip(join(lab.root, "packs", `${pack}.pack`), PACK_HEADER + 7 * BLOCK + 5);
  const before = await lab.save({ memory: withNewPages(memory, [9]) }, differs);
  await scrub(lab);
  const [after, afterThat] = [await lab.save({ memory }, first), await lab.save({ memory: changed }, differs)];
  const { problems } = await scrub(lab);
  expect([before, after, afterThat].map(({ key }) => problems.has(key))).toEqual([true, false, false]);
  expect(await lab.load(after)).toEqual(asText({ memory }));
  expect(await lab.load(afterThat)).toEqual(asText({ memory: changed }));
});

test("several damaged blocks are all found, even adjacent ones", async () => {
  const lab = await openLab();
  const { pack, unrelated } = await family(lab);
  const path = join(lab.root, "packs", `${pack}.pack`);
  for (const block of [2, 3, 9]) await flip(path, PACK_HEADER + block * BLOCK + 1);
  const { damagedBlocks, problems } = await scrub(lab);
  const offsets = damagedBlocks.map(({ offset }) => (offset - PACK_HEADER) / BLOCK);
  expect(offsets.toSorted((a, b) => a - b)).toEqual([2, 3, 9]);
  expect(problems.has(unrelated.key)).toBe(false);
});

test("verifying one image names the others that its damage affects, without reading them", async () => {
  const lab = await openLab();
  const { first, shares, differs, pack } = await family(lab);
  await flip(join(lab.root, "packs", `${pack}.pack`), PACK_HEADER + 7 * BLOCK + 5);
  const { damagedBlocks, blocks } = await begin(lab).verify([shares], NAMED);
  expect(damagedBlocks.map(({ images }) => images)).toEqual([keys(shares, first, differs)]);
  expect(blocks).toBe(13);
});

test("a missing pack, an unreadable image and an unreferenced pack are distinguished", async () => {
  const lab = await openLab();
  const { first, unrelated, shares, differs, without, pack } = await family(lab);
  await rm(join(lab.root, "packs", `${pack}.pack`));
  await truncate(join(lab.root, unrelated.key), 100);
  const { images, missingPacks, damagedBlocks, problems, unnamedPacks } = await scrub(lab);
  expect(missingPacks).toEqual([{ pack, images: keys(first, shares, differs, without) }]);
  expect(damagedBlocks).toEqual([]);
  expect(problems.get(unrelated.key)).toMatchObject({ verdict: "unreadable" });
  expect(images).toEqual({ whole: 0, damaged: 4, unreadable: 1, missing: 0, locked: 0 });
  expect(unnamedPacks.count).toBe(1);
  expect(unnamedPacks.bytes).toBeGreaterThan(9 * BLOCK);
});

test("a pack that disappears during the check is missing, and the differences to its blocks are not", async () => {
  const lab = await openLab({ remote: true });
  const memory = randomBytes(12 * BLOCK);
  const first = await lab.save({ memory });
  const pack = ((await lab.packs())[0] ?? "").replace(".pack", "");
  // More than an image has room for: its differences have a pack of their own.
  const pages = Array.from({ length: 48 }, (_, page) => 16 * page);
  const second = await lab.save({ memory: withNewPages(memory, pages) }, first);
  await rm(join(lab.root, first.key));
  const losing = new Proxy(lab.store, {
    get: (target, name) => {
      const value: unknown = Reflect.get(target, name, target);
      if (typeof value !== "function") return value;
      if (name !== "read") return value.bind(target) as unknown;
      return (key: string, ...rest: unknown[]) => {
        if (key.includes(pack)) rmSync(join(lab.root, "packs", `${pack}.pack`), { force: true });
        return Reflect.apply(value, target, [key, ...rest]) as unknown;
      };
    },
  });
  const { missingPacks, damagedBlocks } = await new ImageStore(losing).scrub({ clock: systemClock }).run(NOTHING_NAMED);
  expect(missingPacks).toEqual([{ pack, images: keys(second) }]);
  expect(damagedBlocks).toEqual([]);
});

test("damage inside an image, and in its table, affects only that image", async () => {
  const lab = await openLab();
  const good = await lab.save({ a: randomBytes(5000) });
  const blocks = await lab.save({ a: randomBytes(5000) });
  const table = await lab.save({ a: randomBytes(5000) });
  await flip(join(lab.root, blocks.key), 100);
  await flip(join(lab.root, table.key), 16 + 5000 + 10);
  const { problems, damagedBlocks } = await scrub(lab);
  expect(damagedBlocks).toMatchObject([{ pack: undefined, offset: 0, images: keys(blocks) }]);
  expect(problems.get(table.key)).toEqual({ verdict: "unreadable", problem: "the table's digest differs" });
  expect(problems.has(good.key)).toBe(false);
});

test("images of format 1 are read too", async () => {
  const lab = await openLab();
  const image = await packPlainImage(await stateOf({ memory: randomBytes(300_000) }));
  await lab.store.write("s/checkpoints/checkpoint_1.img", [image]);
  expect((await scrub(lab)).images).toMatchObject({ whole: 1 });
  await flip(join(lab.root, "s/checkpoints/checkpoint_1.img"), 5000);
  const { problems, bytes } = await scrub(lab);
  const problem = { verdict: "damaged", problem: 'member "memory": its digest differs' };
  expect(problems).toEqual(new Map([["s/checkpoints/checkpoint_1.img", problem]]));
  expect(bytes).toBe(300_000);
});

test("an image that a head or a record names and the store lacks is missing; a digest that differs is damage", async () => {
  const lab = await openLab();
  const image = await lab.save({ a: randomBytes(5000) });
  const gone = "sandbox/checkpoints/checkpoint_77.img";
  const named = async () => new Map([[gone, undefined] as const, [image.key, "0".repeat(64)] as const]);
  const { problems } = await begin(lab).run(named);
  expect(problems.get(gone)?.verdict).toBe("missing");
  expect(problems.get(image.key)).toEqual({
    verdict: "damaged",
    problem: "it is not the image that its record names",
  });
  let asked = 0;
  const moved = async () => new Map(asked++ === 0 ? [[gone, undefined]] : []);
  expect((await begin(lab).run(moved)).problems.size).toBe(0);
});

test("an image that is removed before it is verified is missing only if something still references it", async () => {
  const lab = await openLab();
  const key = "sandbox/checkpoints/checkpoint_77.img";
  expect((await begin(lab).verify([{ key }], async () => false)).problems.size).toBe(0);
  const { problems, images } = await begin(lab).verify([{ key }], NAMED);
  expect([problems.get(key)?.verdict, images.missing]).toEqual(["missing", 1]);
});

test("an object that is removed during the check is not damage", async () => {
  const lab = await openLab();
  const { first, shares, differs, without, unrelated, pack } = await family(lab);
  const going = [first, shares, differs, without];
  const collected = lab.images.scrub({ clock: removing(lab, going, pack), bytesPerSecond: 1 });
  const after = await collected.run(NOTHING_NAMED);
  expect([after.problems.size, after.damagedBlocks, after.missingPacks]).toEqual([0, [], []]);
  expect(await lab.store.stat(unrelated.key)).toBeDefined();
  expect(await lab.packs()).not.toContain(`${pack}.pack`);
});

/** At the first sleep, which is in the middle of the first image, images and then their pack go. */
function removing(lab: ImageLab, images: readonly SavedImage[], pack: string): Clock {
  let done = false;
  return {
    ...systemClock,
    sleep: async () => {
      if (done) return;
      done = true;
      for (const { key } of images) await rm(join(lab.root, key));
      await rm(join(lab.root, "packs", `${pack}.pack`));
    },
  };
}

test("a cancelled pass continues where it was", async () => {
  const lab = await openLab();
  await family(lab);
  const whole = await scrub(lab);
  const stopped = new AbortController();
  const slept: number[] = [];
  const sleep = async (ms: number): Promise<void> => {
    slept.push(ms);
    if (slept.length === 4) stopped.abort(new Error("called off"));
  };
  const pass = begin(lab, { clock: { ...systemClock, monotonicMs: () => 0, sleep }, bytesPerSecond: 1000 });
  await expect(pass.run(NOTHING_NAMED, { signal: stopped.signal })).rejects.toThrow("called off");
  pass.pace.bytesPerSecond = undefined;
  const result = await pass.run(NOTHING_NAMED);
  expect(result.images).toEqual(whole.images);
  expect(result.blocks).toBe(whole.blocks);
});

test("keeps to its rate", async () => {
  const lab = await openLab();
  await family(lab);
  let nowMs = 0;
  const clock: Clock = { ...systemClock, monotonicMs: () => nowMs, sleep: async (ms) => void (nowMs += ms) };
  const { bytes } = await begin(lab, { clock, bytesPerSecond: 1_000_000 }).run(NOTHING_NAMED);
  expect(nowMs / 1000).toBeCloseTo(bytes / 1_000_000, 0);
});

test("the bytes of a remote store are read, not a copy here", async () => {
  const folder = await temporaryFolder();
  const lab = await openLab({ remote: true, cache: new PackCache(folder, 1024 ** 3) });
  const image = await lab.save({ memory: randomBytes(12 * BLOCK) });
  const [pack = ""] = await lab.packs();
  const copy = join(folder, pack.replace(".pack", ""));
  await flip(copy, PACK_HEADER + 7 * BLOCK);
  expect((await scrub(lab)).problems.size).toBe(0);
  await flip(copy, PACK_HEADER + 7 * BLOCK);
  await lab.load(image);
  await flip(join(lab.root, "packs", pack), PACK_HEADER + 7 * BLOCK);
  expect((await scrub(lab)).damagedBlocks).toMatchObject([{ images: keys(image) }]);
  await rm(join(lab.root, "packs", pack));
  expect((await scrub(lab)).missingPacks).toMatchObject([{ images: keys(image) }]);
});

test("fetched packs of a remote store are in the given folder, only as long as they are needed", async () => {
  const lab = await openLab({ remote: true });
  await lab.save({ memory: randomBytes(12 * BLOCK) });
  const [pack = ""] = await lab.packs();
  const workDirectory = await temporaryFolder();
  const seen = new Set<string>();
  const sleep = async (): Promise<void> => {
    for (const name of await readdir(workDirectory, { recursive: true })) seen.add(basename(name));
  };
  const { images } = await begin(lab, { clock: { ...systemClock, sleep }, bytesPerSecond: 1, workDirectory }).run(
    NOTHING_NAMED,
  );
  expect(images.whole).toBe(1);
  expect(seen).toContain(pack.replace(".pack", ""));
  expect(await readdir(workDirectory)).toEqual([]);
});

test("the leftovers of a killed scrub are removed by a later one, once nobody can use them", async () => {
  const lab = await openLab();
  const workDirectory = await temporaryFolder();
  const [old, present] = ["sandboxer-scrub-old", "sandboxer-scrub-present"];
  for (const name of [old, present]) await mkdir(join(workDirectory, name));
  const days = new Date(Date.now() - 2 * 24 * 3_600_000);
  await utimes(join(workDirectory, old), days, days);
  await begin(lab, { clock: systemClock, workDirectory }).run(NOTHING_NAMED);
  expect(await readdir(workDirectory)).toEqual([present]);
});
