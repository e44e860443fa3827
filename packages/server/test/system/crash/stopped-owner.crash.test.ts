import { describe, expect, test } from "vitest";
import { eventually } from "../../../../../test/kit/eventually.ts";
import { DURABLE, pair, storedSandbox } from "./support/pair.ts";
import type { StepName } from "./support/steps.ts";
import { contentOf, headOf, save, write } from "./support/survivor.ts";

describe("a server that stalls in the middle of a save, beyond its lease", () => {
  test.each<[StepName]>([["the image is written"], ["the head is about to be released"]])(
    "when %s: it finds out that the sandbox is not its own, and publishes nothing",
    async (step) => {
      const { survivor, doomed } = await pair(step, "stopAt");
      const id = await storedSandbox(survivor);
      const old = doomed.attach(id);
      await old.until("RUNNING");
      await write(old, "unsaved");
      old.send({ action: "checkpoint" });
      await eventually("it stands still", () => doomed.isStopped());
      const fresh = survivor.attach(id);
      await fresh.until("RUNNING");
      expect(await contentOf(fresh)).toBe("old");
      const taken = await headOf(survivor, id);
      doomed.kill("SIGCONT");
      const said = await old.untilClosed();
      expect(said).not.toContain("CHECKPOINTED");
      expect(said.at(-1)).toBe(4000);
      expect(await headOf(survivor, id)).toEqual(taken);
      // It continues as a server, once it has a new id.
      await write(fresh, "mine");
      await save(fresh);
      let back = doomed.attach(id);
      await eventually("it may have the sandbox again", async () => {
        if ((await back.outcome()).includes("RUNNING")) return true;
        back = doomed.attach(id);
        return false;
      });
      expect(await contentOf(back)).toBe("mine");
    },
  );

  test("when the head is released: the later state stays the latest", async () => {
    const { survivor, doomed } = await pair("the head is released", "stopAt");
    const { client, id } = await doomed.create(DURABLE);
    await write(client, "first");
    client.send({ action: "checkpoint" });
    await eventually("it stands still", () => doomed.isStopped());
    const fresh = survivor.attach(id);
    await fresh.until("RUNNING");
    expect(await contentOf(fresh)).toBe("first");
    await write(fresh, "second");
    await save(fresh);
    doomed.kill("SIGCONT");
    expect((await client.untilClosed()).slice(-2)).toEqual(["CHECKPOINTED", 1000]);
    const { checkpoint } = await headOf(survivor, id);
    expect(checkpoint?.parent).not.toBeNull();
    expect(await survivor.durable?.checkpoints.latestName(id)).toBe(checkpoint?.name);
  });
});
