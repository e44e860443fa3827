import { randomBytes } from "node:crypto";
import { readFile, rm, writeFile } from "node:fs/promises";
import { join } from "node:path";
import { describe, expect, it, vi } from "vitest";
import { checkOf } from "../../../src/checkpoints/blocks/block-check.ts";
import { BlockReader } from "../../../src/checkpoints/blocks/block-reader.ts";
import { encodeTable, zeroEntry } from "../../../src/checkpoints/blocks/block-table.ts";
import { PlainCopies } from "../../../src/checkpoints/blocks/plain-copies.ts";
import { ImageStore, type SavedImage } from "../../../src/checkpoints/image-store.ts";
import { PackCache } from "../../../src/checkpoints/packs/pack-cache.ts";
import { UnpackedImages } from "../../../src/checkpoints/unpacked-images.ts";
import { temporaryFolder } from "../../../../../test/kit/temporary-folder.ts";
import { asText, BLOCK, flip, type ImageLab, openLab, PAGE, withNewPages } from "./block-images.ts";

const LARGE = 24 * BLOCK;

/** A store that is elsewhere, of which a server has the members of its images as they are. */
async function openLabWithCopies() {
  const [copies, packs] = [await temporaryFolder(), await temporaryFolder()];
  const unpacked = new UnpackedImages(copies, 10 * LARGE);
  const lab = await openLab({ remote: true, cache: new PackCache(packs, 1024 ** 3), unpacked });
  return { lab, copies, packs };
}

/** By a server that has nothing of it. */
async function loadElsewhere({ store }: ImageLab, { key }: SavedImage): Promise<Record<string, string>> {
  const images = new ImageStore(store);
  const { members } = await images.unpack(await images.open(key), await temporaryFolder());
  const read = members.map(async ({ name, path }) => [name, await readFile(path)] as const);
  return asText(Object.fromEntries(await Promise.all(read)));
}

describe("a save against an image with plain local copies of its members", () => {
  it("needs no pack of that one", async () => {
    const { lab, packs } = await openLabWithCopies();
    const memory = randomBytes(LARGE);
    const first = await lab.save({ memory, meta: Buffer.from("{}") });
    await rm(packs, { recursive: true });
    const changed = withNewPages(memory, [3, 700]);
    const second = await lab.save({ memory: changed, meta: Buffer.from("{}") }, first);
    expect(second.addedBytes).toBeLessThan(6 * PAGE);
    expect(await loadElsewhere(lab, second)).toEqual(asText({ memory: changed, meta: Buffer.from("{}") }));
  });

  it("finds there what has moved", async () => {
    const { lab, packs } = await openLabWithCopies();
    const memory = randomBytes(LARGE);
    const first = await lab.save({ memory });
    await rm(packs, { recursive: true });
    const moved = Buffer.concat([randomBytes(3 * PAGE), memory.subarray(0, 9 * BLOCK), memory.subarray(10 * BLOCK)]);
    const second = await lab.save({ memory: moved }, first);
    expect(second.addedBytes).toBeLessThan(2 * BLOCK);
    expect(await loadElsewhere(lab, second)).toEqual(asText({ memory: moved }));
  });

  it.each([
    ["in a page that has not changed", 5, true],
    ["in a page that has", 3 * PAGE + 5, true],
    ["where the state has changed in the same way", 5, false],
  ])("takes nothing from a block that a disk has damaged %s", async (_where, offset, hasPacks) => {
    const { lab, copies, packs } = await openLabWithCopies();
    const memory = randomBytes(LARGE);
    const first = await lab.save({ memory });
    const at = 7 * BLOCK + offset;
    const damaged = Buffer.from(memory);
    damaged[at] = (damaged[at] ?? 0) ^ 1;
    await writeFile(join(copies, first.sha256, "memory"), damaged);
    if (!hasPacks) await rm(packs, { recursive: true });
    const changed = hasPacks ? withNewPages(memory, [7 * 64 + 3]) : damaged;
    const second = await lab.save({ memory: changed }, first);
    // With its pack at hand the block costs what has changed all the same.
    expect(second.addedBytes).toBeLessThan(hasPacks ? 3 * PAGE : 2 * BLOCK);
    expect(await loadElsewhere(lab, second)).toEqual(asText({ memory: changed }));
  });

  it("takes no bytes that are damaged in the image itself, though the copy is intact", async () => {
    const { lab } = await openLabWithCopies();
    const memory = randomBytes(LARGE);
    const first = await lab.save({ memory });
    const changed = withNewPages(memory, [64 * 7]);
    const second = await lab.save({ memory: changed }, first);
    await flip(join(lab.root, second.key), 16 + 40);
    const third = await lab.save({ memory: changed }, second);
    expect(await loadElsewhere(lab, third)).toEqual(asText({ memory: changed }));
  });

  it("continues while they are removed", async () => {
    const { lab, copies } = await openLabWithCopies();
    const memory = randomBytes(LARGE);
    const first = await lab.save({ memory });
    const changed = withNewPages(memory, [3]);
    const saving = lab.save({ memory: changed }, first);
    await rm(copies, { recursive: true });
    expect(await loadElsewhere(lab, await saving)).toEqual(asText({ memory: changed }));
  });

  it("restores every state of a long series of saves", async () => {
    const { lab } = await openLabWithCopies();
    let memory: Buffer = randomBytes(LARGE / 2 + 123);
    let last = await lab.save({ memory });
    for (let step = 0; step < 7; step++) {
      memory = withNewPages(memory, [step, 64 * step + 1, 700]);
      if (step === 4) memory = Buffer.concat([randomBytes(5 * PAGE), memory]);
      last = await lab.save({ memory }, last);
      expect(await loadElsewhere(lab, last)).toEqual(asText({ memory }));
    }
  });
});

it("are not used when the bytes of the store are requested", async () => {
  const { lab, packs } = await openLabWithCopies();
  const image = await lab.save({ memory: randomBytes(LARGE) });
  const load = async (fromStore: boolean) =>
    await lab.images.unpack(await lab.images.open(image.key), await temporaryFolder(), { fromStore });
  await rm(packs, { recursive: true });
  await rm(join(lab.root, "packs"), { recursive: true });
  await (
    await load(false)
  ).verified;
  await expect(load(true)).rejects.toMatchObject({ code: "image_damaged" });
});

it("are not read where there are zeros", async () => {
  const path = join(await temporaryFolder(), "memory");
  await writeFile(path, Buffer.alloc(BLOCK));
  const copies = new PlainCopies([{ firstBlock: 0, blockCount: 1, path }]);
  const read = vi.spyOn(copies, "read");
  const source = {
    inImage: Buffer.alloc(0),
    writerIds: [],
    writerId: "",
    cipher: undefined,
    heldAgainst: "check",
  } as const;
  const reader = new BlockReader({ ...source, table: encodeTable([zeroEntry(BLOCK)]), copies });
  expect(reader.read(0).equals(Buffer.alloc(BLOCK))).toBe(true);
  expect(read).not.toHaveBeenCalled();
  reader.close();
});

it("a copy that is read again stays valid for as many further reads as one that is read first", async () => {
  const blocks = Array.from({ length: 40 }, () => randomBytes(BLOCK));
  const path = join(await temporaryFolder(), "memory");
  await writeFile(path, Buffer.concat(blocks));
  const copies = new PlainCopies([{ firstBlock: 0, blockCount: blocks.length, path }]);
  const read = (index: number): Buffer | undefined =>
    copies.read(index, { ...zeroEntry(BLOCK), check: checkOf(blocks[index] ?? Buffer.alloc(0)) });
  for (let index = 0; index < 16; index++) read(index);
  const again = read(0);
  for (let index = 16; index < 31; index++) expect(read(index)?.equals(blocks[index] ?? Buffer.alloc(0))).toBe(true);
  expect(again?.equals(blocks[0] ?? Buffer.alloc(0))).toBe(true);
  copies.close();
});
