import { readdir, readFile } from "node:fs/promises";
import { join } from "node:path";
import { expect, it } from "vitest";
import { DirectoryStore } from "../../src/store/directory/directory-store.ts";
import { chainIn, race, RACED_KEY } from "./racers.ts";
import { temporaryFolder } from "../../../../test/kit/temporary-folder.ts";
import { eventually } from "../../../../test/kit/eventually.ts";
import { meanwhile } from "../../../../test/kit/meanwhile.ts";

async function chainAt(root: string): Promise<string[]> {
  return await chainIn(await DirectoryStore.open(root));
}

/** Each version that is kept names the nonce of the one before it. */
async function expectUnbrokenParents(root: string): Promise<void> {
  const folder = join(root, "sandbox/.head");
  const names = (await readdir(folder)).filter((name) => name.startsWith("v")).toSorted();
  let before: string | undefined;
  for (const name of names.slice(-16)) {
    const [line = ""] = (await readFile(join(folder, name), "utf8")).split("\n");
    const { nonce, parent } = JSON.parse(line) as { nonce: string; parent: string };
    if (before !== undefined) expect(parent).toBe(before);
    before = nonce;
  }
}

it("loses no acknowledged write of processes that race", async () => {
  const root = await temporaryFolder();
  const racers = ["a", "b", "c", "d"].map((name) => race(root, name, 30));
  await Promise.all(racers.map(({ ended }) => ended));
  const chain = await chainAt(root);
  expect(new Set(chain).size).toBe(chain.length);
  expect(chain.toSorted()).toEqual(racers.flatMap(({ acknowledged }) => acknowledged).toSorted());
  expect(chain).toHaveLength(120);
  await expectUnbrokenParents(root);
  const view = await readFile(join(root, RACED_KEY), "utf8");
  expect((JSON.parse(view) as { chain: string[] }).chain).toEqual(chain);
});

it("loses no acknowledged write of processes that are killed in the middle", async () => {
  const root = await temporaryFolder();
  const acknowledged: string[] = [];
  for (let round = 0; round < 8; round++) {
    const racers = ["a", "b", "c"].map((name) => race(root, `${name}${round}`, 0));
    await eventually("each has written", () => racers.every((racer) => racer.acknowledged.length >= 3));
    for (const { child } of racers) {
      await meanwhile(Math.random() * 6);
      child.kill("SIGKILL");
    }
    await Promise.all(racers.map(({ ended }) => ended));
    acknowledged.push(...racers.flatMap((racer) => racer.acknowledged));
    // The entries of one process are in their original order.
    const chain = await chainAt(root);
    for (const racer of racers) {
      const own = chain.filter((entry) => entry.startsWith(`${(racer.acknowledged[0] ?? "").split("-")[0]}-`));
      expect(own.slice(0, racer.acknowledged.length)).toEqual(racer.acknowledged);
      expect(own.length - racer.acknowledged.length).toBeLessThanOrEqual(1);
    }
  }
  const chain = new Set(await chainAt(root));
  expect(acknowledged.filter((entry) => !chain.has(entry))).toEqual([]);
  await expectUnbrokenParents(root);
});
