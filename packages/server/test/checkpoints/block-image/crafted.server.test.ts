import { readdir } from "node:fs/promises";
import { zstdCompressSync } from "node:zlib";
import { expect, it } from "vitest";
import { readBlockContents, type OpenBlockImage } from "../../../src/checkpoints/block-image/open-block-image.ts";
import { encodeTable, zeroEntry } from "../../../src/checkpoints/blocks/block-table.ts";
import { temporaryFolder } from "../../../../../test/kit/temporary-folder.ts";
import { BLOCK, openLab, type ImageLab } from "./block-images.ts";
import { type Crafted, CRAFTED_KEY, deepTable, entryOf, writeCrafted } from "./crafted-image.ts";

async function unpacked(lab: ImageLab, crafted: Crafted): Promise<readonly string[]> {
  await writeCrafted(lab.store, crafted);
  const into = await temporaryFolder();
  const error: unknown = await lab.images
    .open(CRAFTED_KEY)
    .then((image) => lab.images.unpack(image, into))
    .then(
      () => undefined,
      (thrown: unknown) => thrown,
    );
  if (error !== undefined) throw error;
  return await readdir(into);
}

const zeros = (count: number): Buffer => Buffer.alloc(count * 80, encodeTable([zeroEntry(BLOCK)]));
const PLAIN = Buffer.alloc(BLOCK, 7);

it("is read if all its claims are true", async () => {
  expect(await unpacked(await openLab(), { table: zeros(3) })).toEqual(["memory"]);
  const stored = zstdCompressSync(PLAIN);
  const table = encodeTable([entryOf(PLAIN, { codec: 2, storedBytes: stored.byteLength })]);
  expect(await unpacked(await openLab(), { table, inImage: stored })).toEqual(["memory"]);
});

it("that claims a terabyte in a few kilobytes is refused before anything is created", async () => {
  const lab = await openLab({ machineBytes: async () => 2 ** 39 });
  const into = await temporaryFolder();
  await writeCrafted(lab.store, { table: zeros(4 * 1024 * 1024) });
  const image = await lab.images.open(CRAFTED_KEY);
  expect(image.sizeBytes).toBeLessThan(100_000);
  await expect(lab.images.unpack(image, into)).rejects.toMatchObject({
    code: "no_space",
    message: expect.stringContaining("1099511627776 bytes") as unknown,
  });
  expect(await readdir(into)).toEqual([]);
});

it("with hundreds of thousands of interdependent blocks does not block others", async () => {
  const lab = await openLab();
  await writeCrafted(lab.store, {
    table: deepTable(400_000),
    members: [{ name: "memory", size_bytes: 400_000 * BLOCK, first_block: 0, blocks: 400_000 }],
  });
  // The time of this thread alone, so that other load does not matter.
  const busyMs = (): number => (process.threadCpuUsage().user + process.threadCpuUsage().system) / 1000;
  let longest = 0;
  let last = busyMs();
  const watch = setInterval(() => {
    const now = busyMs();
    longest = Math.max(longest, now - last);
    last = now;
  }, 1);
  await lab.images
    .open(CRAFTED_KEY)
    .then((image) => lab.images.verify(image))
    .catch(() => {});
  clearInterval(watch);
  longest = Math.max(longest, busyMs() - last);
  expect(longest).toBeLessThan(1500);
});

const OTHER = zeroEntry(BLOCK);
const DIFFERENCE = { ...OTHER, codec: 3 as const, depth: 1, reference: 1 };
const BOMB = zstdCompressSync(Buffer.alloc(64 * 1024 * 1024));

const REFUSED: readonly [string, Crafted, RegExp][] = [
  ["a block of no size", { table: encodeTable([zeroEntry(0)]) }, /an impossible size/],
  ["a block larger than a block", { table: encodeTable([zeroEntry(BLOCK + 1)]) }, /an impossible size/],
  ["an unknown codec", { table: encodeTable([{ ...OTHER, codec: 9 as never }]) }, /unknown codec 9/],
  ["a block behind the image", { table: encodeTable([entryOf(PLAIN, {})]) }, /not inside the image/],
  ["a pack that is not named", { table: encodeTable([{ ...OTHER, pack: 5 }]) }, /pack that the image does not name/],
  [
    "more stored than a block can be",
    {
      table: encodeTable([{ ...OTHER, pack: 0, storedBytes: 0xffff_ffff }]),
      packs: [{ id: "b1946ac9-0000-4000-8000-000000000001-1", size_bytes: 1 }],
    },
    /an impossible stored size/,
  ],
  [
    "a block that refers to itself",
    { table: encodeTable([{ ...DIFFERENCE, reference: 0 }]) },
    /refers to a block that depends on as many/,
  ],
  [
    "blocks that refer to one another",
    { table: encodeTable([DIFFERENCE, { ...DIFFERENCE, reference: 0 }]) },
    /refers to a block that depends on as many/,
  ],
  ["a reference to nothing", { table: encodeTable([{ ...DIFFERENCE, reference: 7 }]) }, /a missing block/],
  [
    "a chain that is too long",
    { table: encodeTable([{ ...DIFFERENCE, depth: 5 }, OTHER]) },
    /it depends on too many others/,
  ],
  ["zeros that refer to others", { table: encodeTable([{ ...OTHER, reference: 0 }]) }, /references that its codec/],
  ["a shift beyond a block", { table: encodeTable([{ ...DIFFERENCE, shift: BLOCK }, OTHER]) }, /an impossible shift/],
  [
    "a block that unpacks to 64 MiB",
    { table: encodeTable([entryOf(PLAIN, { codec: 2, storedBytes: BOMB.byteLength })]), inImage: BOMB },
    /it cannot be decompressed/,
  ],
  [
    "a difference that unpacks to 64 MiB",
    {
      table: encodeTable([entryOf(PLAIN, { ...DIFFERENCE, storedBytes: BOMB.byteLength }), OTHER]),
      members: [{ name: "memory", size_bytes: BLOCK, first_block: 0, blocks: 1 }],
      inImage: BOMB,
    },
    /it cannot be decompressed/,
  ],
  [
    "more entries than its members need",
    { table: zeros(100), members: [{ name: "memory", size_bytes: BLOCK, first_block: 0, blocks: 1 }] },
    /more than its members need/,
  ],
  [
    "more members than any state has",
    {
      table: Buffer.alloc(0),
      members: Array.from({ length: 20_000 }, (_, n) => ({ name: `m${n}`, size_bytes: 0, first_block: 0, blocks: 0 })),
    },
    /the manifest lacks/,
  ],
  [
    "a name of a kilobyte and more",
    { table: zeros(1), members: [{ name: "a/".repeat(1000) + "b", size_bytes: BLOCK, first_block: 0, blocks: 1 }] },
    /the manifest lacks/,
  ],
  [
    "a manifest that unpacks to 40 MiB",
    { table: zeros(1), requirements: { text: "x".repeat(40 * 1024 * 1024) } },
    /the manifest lacks/,
  ],
  [
    "a pack of a terabyte",
    { table: zeros(1), packs: [{ id: "b1946ac9-0000-4000-8000-000000000001-1", size_bytes: 2 ** 40 }] },
    /the envelope lacks/,
  ],
];

it.each(REFUSED)("is refused with %s", async (_, crafted, problem) => {
  await expect(unpacked(await openLab(), crafted)).rejects.toMatchObject({
    code: "image_damaged",
    message: expect.stringMatching(problem) as unknown,
  });
});

it("with a table that is longer than claimed is not decompressed beyond the claimed size", async () => {
  const lab = await openLab();
  await writeCrafted(lab.store, { table: zeros(100_000) });
  const image = (await lab.images.open(CRAFTED_KEY)) as OpenBlockImage;
  const short = { ...image, envelope: { ...image.envelope, table: { ...image.envelope.table, entries: 10 } } };
  await expect(readBlockContents(lab.store, short)).rejects.toMatchObject({
    message: expect.stringContaining("not as long as it should be") as unknown,
  });
});
