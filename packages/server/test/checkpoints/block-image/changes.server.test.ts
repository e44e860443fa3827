import { randomBytes } from "node:crypto";
import { rm, writeFile } from "node:fs/promises";
import { join } from "node:path";
import fc from "fast-check";
import { describe, expect, it } from "vitest";
import { packPlainImage } from "../plain-images.ts";
import { asText, BLOCK, openLab, PAGE, stateOf, withNewPages } from "./block-images.ts";

/** Much more than fits into an image itself. */
const LARGE = 24 * BLOCK;

describe("an image that is written against another one", () => {
  it("costs only the changes", async () => {
    const lab = await openLab();
    const memory = randomBytes(LARGE);
    const first = await lab.save({ memory });
    expect(first.addedBytes).toBeGreaterThan(LARGE);
    const changed = withNewPages(memory, [3, 700, 701, 1400]);
    const second = await lab.save({ memory: changed }, first);
    expect(second.addedBytes).toBeLessThan(6 * PAGE);
    // Its size includes everything that it consists of.
    expect(second.sizeBytes).toBeGreaterThan(LARGE);
    expect(await lab.load(second)).toEqual(asText({ memory: changed }));
    expect(await lab.load(first)).toEqual(asText({ memory }));
  });

  it("costs next to nothing without changes, and adds no pack", async () => {
    const lab = await openLab();
    const members = { memory: randomBytes(LARGE), meta: Buffer.from("{}") };
    const first = await lab.save(members);
    const packs = await lab.packs();
    const second = await lab.save(members, first);
    expect(second.addedBytes).toBeLessThan(16 * 1024);
    expect(await lab.packs()).toEqual(packs);
    expect(await lab.load(second)).toEqual(asText(members));
  });

  it("costs next to nothing without changes, however many changes there were before", async () => {
    const lab = await openLab();
    let memory: Buffer = randomBytes(LARGE);
    let last = await lab.save({ memory });
    for (let round = 0; round < 6; round++) {
      // In each block, and more than fits into an image.
      memory = withNewPages(
        memory,
        Array.from({ length: 48 }, (_, index) => 32 * index + round),
      );
      last = await lab.save({ memory }, last);
      const packs = await lab.packs();
      last = await lab.save({ memory }, last);
      expect(last.addedBytes).toBeLessThan(16 * 1024);
      expect(await lab.packs()).toEqual(packs);
    }
    expect(await lab.load(last)).toEqual(asText({ memory }));
  });

  it("finds content that has moved by whole pages", async () => {
    const lab = await openLab();
    const memory = randomBytes(LARGE);
    const first = await lab.save({ memory });
    const moved = Buffer.concat([
      randomBytes(3 * PAGE),
      memory.subarray(0, 9 * BLOCK),
      randomBytes(70 * PAGE),
      memory.subarray(9 * BLOCK),
    ]);
    const second = await lab.save({ memory: moved }, first);
    // The block with the second move is written in full.
    expect(second.addedBytes).toBeLessThan(73 * PAGE + 3 * BLOCK);
    expect(await lab.load(second)).toEqual(asText({ memory: moved }));
  });

  it("finds moved content among similar content", async () => {
    const lab = await openLab();
    // Objects as an interpreter lays them out: a type, a count, a pointer, and little unique content.
    const memory = Buffer.alloc(LARGE);
    for (let at = 0; at < LARGE; at += 64) {
      memory.writeBigUInt64LE(0x7f12_3456_7890n, at);
      memory.writeUInt32LE(1, at + 8);
      memory.writeBigUInt64LE(0x7f00_0000_0000n + BigInt(at * 3), at + 16);
      memory.set(randomBytes(3), at + 32);
    }
    const first = await lab.save({ memory });
    const moved = Buffer.concat([
      memory.subarray(0, 6 * PAGE),
      Buffer.alloc(11 * PAGE, "new"),
      memory.subarray(6 * PAGE),
    ]);
    const second = await lab.save({ memory: moved }, first);
    // A difference to merely similar content would be smaller than the block, and still many times too large.
    expect(second.addedBytes).toBeLessThan(first.addedBytes / 10);
    expect(await lab.load(second)).toEqual(asText({ memory: moved }));
  });

  it("needs only the packs, not the image that it was written against", async () => {
    const lab = await openLab();
    const memory = randomBytes(LARGE);
    const first = await lab.save({ memory });
    const changed = withNewPages(memory, [5]);
    const second = await lab.save({ memory: changed }, first);
    await lab.store.delete(first.key);
    expect(await lab.load(second)).toEqual(asText({ memory: changed }));
  });

  it.each(["gone", "damaged", "of format 1"])("is written in full if the base is %s", async (what) => {
    const lab = await openLab();
    const memory = randomBytes(LARGE);
    const first = await lab.save({ memory });
    if (what === "gone") await lab.store.delete(first.key);
    if (what === "damaged") await writeFile(join(lab.root, first.key), "no image");
    if (what === "of format 1") {
      await writeFile(join(lab.root, first.key), await packPlainImage(await stateOf({ memory })));
    }
    const second = await lab.save({ memory }, first);
    expect(second.addedBytes).toBeGreaterThan(LARGE);
    expect(await lab.load(second)).toEqual(asText({ memory }));
  });

  it("is written in full if the packs of the base are missing", async () => {
    const lab = await openLab();
    const memory = randomBytes(LARGE);
    const first = await lab.save({ memory });
    await rm(join(lab.root, "packs"), { recursive: true });
    // Unchanged blocks are referenced without a check: an image vouches for its packs.
    const second = await lab.save(
      {
        memory: withNewPages(
          memory,
          Array.from({ length: 24 }, (_, block) => block * 64),
        ),
      },
      first,
    );
    expect(second.addedBytes).toBeGreaterThan(LARGE);
  });

  it("drops packs that it would hardly use", async () => {
    const lab = await openLab();
    const memory = randomBytes(LARGE);
    const first = await lab.save({ memory });
    const [firstPack] = await lab.packs();
    // All but two blocks are new, so the second image hardly uses the first pack, and the third not at all.
    const second = Buffer.concat([memory.subarray(0, 2 * BLOCK), randomBytes(LARGE - 2 * BLOCK)]);
    const secondImage = await lab.save({ memory: second }, first);
    const third = await lab.save({ memory: second }, secondImage);
    const { envelope } = (await lab.images.open(third.key)) as { envelope: { packs: { id: string }[] } };
    expect(envelope.packs.map(({ id }) => `${id}.pack`)).not.toContain(firstPack);
    expect(third.addedBytes).toBeLessThan(3 * BLOCK);
    expect(await lab.load(third)).toEqual(asText({ memory: second }));
  });
});

it.each([
  ["every eighth page", (page: number) => page % 8 === 5],
  ["the first half", (page: number) => page % 64 < 32],
])("compresses blocks of which only %s can be compressed", async (_, isPlain) => {
  const lab = await openLab();
  const pages = Array.from({ length: 24 * 64 }, (__, page) =>
    isPlain(page) ? Buffer.alloc(PAGE, 7) : randomBytes(PAGE),
  );
  const memory = Buffer.concat(pages);
  const image = await lab.save({ memory });
  const plainBytes = pages.filter((__, page) => isPlain(page)).length * PAGE;
  expect(image.addedBytes).toBeLessThan(LARGE - plainBytes * 0.9);
  expect(await lab.load(image)).toEqual(asText({ memory }));
});

it("every image of a long chain loads correctly, whatever changes", async () => {
  const step = fc.oneof(
    fc.record({ kind: fc.constant("page"), at: fc.nat(400) }),
    fc.record({ kind: fc.constant("insert"), at: fc.nat(400) }),
    fc.record({ kind: fc.constant("cut"), at: fc.nat(400) }),
    fc.record({ kind: fc.constant("byte"), at: fc.nat(400) }),
    fc.record({ kind: fc.constant("clear"), at: fc.nat(400) }),
    fc.record({ kind: fc.constant("odd end"), at: fc.nat(400) }),
  );
  const life = fc.array(fc.array(step, { maxLength: 4 }), { minLength: 6, maxLength: 9 });
  await fc.assert(
    fc.asyncProperty(life, async (changes) => {
      const lab = await openLab();
      let memory = randomBytes(6 * BLOCK + 123);
      let last = await lab.save({ memory });
      const expected: [typeof last, Record<string, string>][] = [[last, asText({ memory })]];
      for (const steps of changes) {
        for (const { kind, at } of steps) memory = changed(memory, kind, at);
        last = await lab.save({ memory }, last);
        expected.push([last, asText({ memory })]);
      }
      for (const [image, contents] of expected) expect(await lab.load(image)).toEqual(contents);
    }),
    { numRuns: 5 },
  );
});

function changed(memory: Buffer<ArrayBuffer>, kind: string, page: number): Buffer<ArrayBuffer> {
  const at = Math.min(page * PAGE, Math.max(0, memory.byteLength - PAGE));
  if (kind === "insert") return Buffer.concat([memory.subarray(0, at), randomBytes(PAGE), memory.subarray(at)]);
  if (kind === "cut") return Buffer.concat([memory.subarray(0, at), memory.subarray(at + PAGE)]);
  if (kind === "odd end") return Buffer.concat([memory, randomBytes(1 + (page % 7))]);
  const copy = Buffer.from(memory);
  if (kind === "page") copy.set(randomBytes(PAGE), at);
  else if (kind === "clear") copy.fill(0, at, Math.min(at + 3 * BLOCK, copy.byteLength));
  else copy[at] = (copy[at] ?? 0) ^ 0xff;
  return copy;
}
