import { randomBytes } from "node:crypto";
import { readFile, rm, truncate, writeFile } from "node:fs/promises";
import { join } from "node:path";
import { expect, it } from "vitest";
import { PackCache } from "../../../src/checkpoints/packs/pack-cache.ts";
import { temporaryFolder } from "../../../../../test/kit/temporary-folder.ts";
import { asText, BLOCK, flip, openLab, withNewPages } from "./block-images.ts";

it("is detected everywhere in an image and its blocks", async () => {
  const lab = await openLab();
  const image = await lab.save({ one: randomBytes(300), two: Buffer.alloc(0), "in/three": Buffer.alloc(5000, 7) });
  const path = join(lab.root, image.key);
  const good = await readFile(path);
  const undetected: number[] = [];
  // One digest covers all bytes of a part: every fifth byte is tested, each bit in turn. The tests of format 1 cover
  // the footer completely.
  for (let at = 0; at < good.byteLength; at += at < 16 ? 1 : 5) {
    const bad = Buffer.from(good);
    bad[at] = (good[at] ?? 0) ^ (1 << (at % 8));
    await writeFile(path, bad);
    const problem = await problemOf(lab.load(image));
    if (problem === undefined) undetected.push(at);
    else expect(problem).toMatchObject({ code: "image_damaged" });
  }
  expect(undetected).toEqual([]);
  await writeFile(path, good);
  await lab.load(image);
});

it("is detected in an image that is truncated anywhere, or has extra bytes at its end", async () => {
  const lab = await openLab();
  const image = await lab.save({ one: randomBytes(3000) });
  const path = join(lab.root, image.key);
  const good = await readFile(path);
  for (let length = 0; length < good.byteLength; length += 17) {
    await writeFile(path, good.subarray(0, length));
    expect(await problemOf(lab.load(image))).toMatchObject({ code: "image_damaged" });
  }
  await writeFile(path, Buffer.concat([good, Buffer.alloc(1)]));
  expect(await problemOf(lab.load(image))).toMatchObject({ code: "image_damaged" });
});

it("names the member, the block and the pack", async () => {
  const { lab, image, pack } = await packedImage();
  await flip(join(lab.root, "packs", pack), 16 + 7 * BLOCK + 5);
  const expected = {
    code: "image_damaged",
    message: expect.stringContaining(`member "memory": block 7 (in packs/${pack}): its digest differs`) as unknown,
  };
  expect(await problemOf(lab.load(image))).toMatchObject(expected);
  expect(await problemOf(lab.images.open(image.key).then((open) => lab.images.verify(open)))).toMatchObject(expected);
});

it("is reported for the block that a difference refers to, not for the difference", async () => {
  const { lab, image, pack, memory } = await packedImage();
  const second = await lab.save({ memory: withNewPages(memory, [64 * 7]) }, image);
  await flip(join(lab.root, "packs", pack), 16 + 7 * BLOCK + 5);
  expect(await problemOf(lab.load(second))).toMatchObject({
    message: expect.stringContaining(`(in packs/${pack}): its digest differs`) as unknown,
  });
});

it("of a truncated or missing pack is reported", async () => {
  const { lab, image, pack } = await packedImage();
  const path = join(lab.root, "packs", pack);
  await truncate(path, 16 + 3 * BLOCK);
  expect(await problemOf(lab.load(image))).toMatchObject({
    message: expect.stringMatching(/block \d+ .*its pack ends at byte/) as unknown,
  });
  await rm(path);
  expect(await problemOf(lab.load(image))).toMatchObject({
    code: "image_damaged",
    message: expect.stringContaining(pack) as unknown,
  });
});

it("of a local copy is repaired from the store", async () => {
  const folder = await temporaryFolder();
  const lab = await openLab({ remote: true, cache: new PackCache(folder, 1024 ** 3) });
  const memory = randomBytes(12 * BLOCK);
  const image = await lab.save({ memory });
  const [pack = ""] = await lab.packs();
  await flip(join(folder, pack.replace(".pack", "")), 16 + 7 * BLOCK + 5);
  expect(await lab.load(image)).toEqual(asText({ memory }));
  await rm(join(folder, pack.replace(".pack", "")));
  expect(await lab.load(image)).toEqual(asText({ memory }));
});

it("of a local copy does not get into a save", async () => {
  const folder = await temporaryFolder();
  const lab = await openLab({ remote: true, cache: new PackCache(folder, 1024 ** 3) });
  const memory = randomBytes(12 * BLOCK);
  const image = await lab.save({ memory });
  const [pack = ""] = await lab.packs();
  await flip(join(folder, pack.replace(".pack", "")), 16 + 7 * BLOCK + 5);
  const changed = withNewPages(memory, [7 * 64 + 3]);
  const second = await lab.save({ memory: changed }, image);
  expect(await lab.load(second)).toEqual(asText({ memory: changed }));
});

it("of blocks in an image itself does not get into the next image", async () => {
  const { lab, image, memory } = await packedImage();
  const changed = withNewPages(memory, [64 * 7]);
  const second = await lab.save({ memory: changed }, image);
  await flip(join(lab.root, second.key), 16 + 40);
  expect(await problemOf(lab.load(second))).toMatchObject({ code: "image_damaged" });
  const third = await lab.save({ memory: changed }, second);
  expect(await lab.load(third)).toEqual(asText({ memory: changed }));
});

it("of lost packs is repaired by the next save of available data", async () => {
  const { lab, image, pack, memory } = await packedImage();
  await rm(join(lab.root, "packs", pack));
  const second = await lab.save({ memory }, image);
  expect(await lab.load(second)).toEqual(asText({ memory }));
});

async function packedImage() {
  const lab = await openLab();
  const memory = randomBytes(12 * BLOCK);
  const image = await lab.save({ memory });
  const [pack = ""] = await lab.packs();
  return { lab, image, pack, memory };
}

async function problemOf(work: Promise<unknown>): Promise<{ code?: string; message: string } | undefined> {
  return await work.then(
    () => undefined,
    (error: unknown) => error as { code?: string; message: string },
  );
}
