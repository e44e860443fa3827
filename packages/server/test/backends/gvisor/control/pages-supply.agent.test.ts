import { openSync, closeSync, readdirSync, readFileSync, statSync, writeSync } from "node:fs";
import { join } from "node:path";
import { expect, test } from "vitest";
import { PagesSupply } from "../../../../src/backends/gvisor/control/pages-supply.ts";
import { agentBinary } from "../../../../../../agent/test/support/build.ts";
import { temporaryFolder } from "../../../../../../test/kit/temporary-folder.ts";
import { FakeClock } from "../../../lease/fake-clock.ts";

const MIB = 1024 * 1024;
const PAGE = 4096;

async function supply(maxBytes = 100 * MIB) {
  const folder = await temporaryFolder();
  const clock = new FakeClock();
  const pages = new PagesSupply({ folder, filler: agentBinary, maxBytes, clock });
  const prepare = async (sizeBytes: number): Promise<void> => {
    pages.saved(sizeBytes);
    await pages.settled();
  };
  return { folder, clock, pages, prepare, path: join(await temporaryFolder(), "pages.img") };
}

/** As the engine writes: from the start, whole pages. */
function write(path: string, count: number): Buffer {
  const content = Buffer.alloc(count * PAGE, "content");
  const file = openSync(path, "r+");
  writeSync(file, content, 0, content.length, 0);
  closeSync(file);
  return content;
}

test.each([0, 1, 2047, 2688, 5000])("after %i pages nothing else is in the file", async (count) => {
  const { pages, prepare, path } = await supply();
  await prepare(10 * MIB);
  await prepare(10 * MIB);
  const file = await pages.take(path, 10 * MIB);
  expect(statSync(path).size).toBe(2688 * PAGE);
  const content = write(path, count);
  await file?.cut();
  expect(readFileSync(path).equals(content)).toBe(true);
});

test("pages of zeros at the end belong to the memory", async () => {
  const { pages, prepare, path } = await supply();
  await prepare(10 * MIB);
  await prepare(10 * MIB);
  const file = await pages.take(path, 10 * MIB);
  const opened = openSync(path, "r+");
  writeSync(opened, Buffer.alloc(7 * PAGE), 0, 7 * PAGE, 0);
  closeSync(opened);
  await file?.cut();
  expect(readFileSync(path).equals(Buffer.alloc(7 * PAGE))).toBe(true);
});

test("a file is prepared for the second save within minutes, used once, and only for as much memory", async () => {
  const { folder, pages, prepare, path, clock } = await supply();
  await prepare(10 * MIB);
  expect(readdirSync(folder)).toEqual([]);
  clock.advance(301_000);
  await prepare(10 * MIB);
  expect(readdirSync(folder)).toEqual([]);
  await prepare(10 * MIB);
  expect(readdirSync(folder)).toHaveLength(1);
  expect(await pages.take(path, 0)).toBeUndefined();
  expect(await pages.take(path, 20 * MIB)).toBeUndefined();
  expect(await pages.take(path, 4 * MIB)).toBeUndefined();
  expect(await pages.take(path, 9 * MIB)).toBeDefined();
  expect(await pages.take(path, 9 * MIB)).toBeUndefined();
  expect(readdirSync(folder)).toEqual([]);
});

test("files are few, have a limit in bytes, and are removed when nobody saves, when space is needed, and at the end", async () => {
  const { folder, pages, prepare, clock } = await supply(25 * MIB);
  await prepare(1 * MIB);
  await prepare(1 * MIB);
  expect(readdirSync(folder)).toEqual([]);
  for (let count = 0; count < 3; count++) await prepare(10 * MIB);
  expect(readdirSync(folder)).toHaveLength(2);
  await pages.clear();
  expect(readdirSync(folder)).toEqual([]);
  await prepare(10 * MIB);
  expect(readdirSync(folder)).toHaveLength(1);
  clock.advance(301_000);
  await expect.poll(() => readdirSync(folder)).toEqual([]);
  await prepare(10 * MIB);
  await prepare(10 * MIB);
  pages.saved(10 * MIB);
  await pages.close();
  expect(readdirSync(folder)).toEqual([]);
  await prepare(10 * MIB);
  expect(readdirSync(folder)).toEqual([]);
});

test("a folder on no disk, or without a filler, is no reason to fail a save", async () => {
  const { pages, prepare, path, folder } = await supply();
  await prepare(10 * MIB);
  await prepare(10 * MIB);
  expect(await pages.take(join(path, "missing"), 10 * MIB)).toBeUndefined();
  expect(readdirSync(folder)).toEqual([]);
  const broken = new PagesSupply({ folder, filler: "/missing", maxBytes: 100 * MIB, clock: new FakeClock() });
  broken.saved(10 * MIB);
  broken.saved(10 * MIB);
  await broken.settled();
  expect(readdirSync(folder)).toEqual([]);
  expect(await broken.take(path, 10 * MIB)).toBeUndefined();
});
