import { readdir } from "node:fs/promises";
import { join } from "node:path";
import { describe, expect, test } from "vitest";
import { collectGarbage } from "../../../src/collection/collect-garbage.ts";
import { openStore } from "../../../src/store/open-store.ts";
import { systemClock } from "../../../src/support/clock.ts";
import type { TestServer } from "../../../../../test/kit/server/test-server.ts";
import { KILLED, pair } from "./support/pair.ts";
import type { StepName } from "./support/steps.ts";
import { contentOf, write } from "./support/survivor.ts";

async function collectAt(store: string) {
  return await collectGarbage({
    store: await openStore(store),
    clock: systemClock,
    apply: true,
    keep: {},
  });
}

/** Every server but this one is dead. */
async function buryOthers({ instances }: TestServer, store: string): Promise<void> {
  const records = (await readdir(join(store, "instances"))).filter((name) => name.endsWith(".json"));
  const others = records.map((name) => name.slice(0, -".json".length)).filter((id) => id !== instances?.instanceId);
  for (const id of others) await instances?.markDead(id);
}

describe("kill -9 during a filesystem snapshot under a name that is in use", () => {
  test.each<[StepName, string]>([
    ["a snapshot is announced", "old"],
    ["half of a snapshot's image is written", "old"],
    ["a snapshot's image is written", "old"],
    ["a snapshot is about to get its name", "old"],
    ["a snapshot has its name", "new"],
  ])("when %s, the name stands for %s, and the rest is collected", async (step, content) => {
    const { survivor, doomed, store } = await pair(step);
    const { client: first } = await survivor.create();
    await write(first, "old");
    await first.send({ action: "snapshot_filesystem", name: "base" }).until("FILESYSTEM_SNAPSHOT_CREATED");
    const { client: second } = await doomed.create({});
    await write(second, "new");
    second.send({ action: "snapshot_filesystem", name: "base" });
    expect(await doomed.exited).toEqual(KILLED);

    const ofName = async (): Promise<string> =>
      contentOf((await survivor.create({ filesystem_snapshot_name: "base" })).client);
    expect(await ofName()).toBe(content);
    const unfinished = step !== "a snapshot is about to get its name" && step !== "a snapshot has its name";
    // Nothing that its publisher may still finish goes while that one is not known to be dead.
    const early = await collectAt(store);
    if (unfinished) expect(early.left.map(({ reason }) => reason)).toContain("a save may be in progress");
    expect(await ofName()).toBe(content);
    await buryOthers(survivor, store);
    await collectAt(store);
    expect(await readdir(join(store, "snapshots"))).toHaveLength(1);
    expect(await ofName()).toBe(content);
    const snapshots = await survivor.durable?.snapshots.list();
    expect(snapshots).toMatchObject([{ name: "base", state: "ready" }]);
  });
});
