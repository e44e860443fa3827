import { describe, expect, test } from "vitest";
import { eventually } from "../../../../../test/kit/eventually.ts";
import { startTestServer } from "../../../../../test/kit/server/test-server.ts";
import { HANDOFF, KILLED, LEASE_TTL_MS, LONG_LEASE_TTL_MS, pair, storedSandbox } from "./support/pair.ts";
import type { StepName } from "./support/steps.ts";
import { contentOf, expectTakenOver, headOf, save, write } from "./support/survivor.ts";

describe("kill -9 during a restore", () => {
  test.each<[StepName]>([["the head is claimed"], ["the image is read"]])(
    "when %s, another server restores the same state",
    async (step) => {
      const { survivor, doomed } = await pair(step);
      const id = await storedSandbox(survivor);
      expect(await doomed.attachUntilDead(id)).toEqual(KILLED);
      expect((await headOf(survivor, id)).owner).not.toBeNull();
      await expectTakenOver(survivor, id, "old");
    },
  );
});

describe("kill -9 during a handoff", () => {
  test.each<[StepName, string, number]>([
    ["the request is seen", "old", LEASE_TTL_MS],
    ["the head is about to be released", "old", LEASE_TTL_MS],
    ["the head is released", "new", LONG_LEASE_TTL_MS],
  ])("of the owner when %s: the one who asked goes on with %s", async (step, content, leaseTtlMs) => {
    const { survivor, doomed } = await pair(step, "dieAt", undefined, leaseTtlMs);
    const id = await storedSandbox(survivor, HANDOFF);
    const client = doomed.attach(id);
    await client.until("RUNNING");
    await write(client, "new");
    const fresh = survivor.attach(id);
    await fresh.until("RUNNING");
    expect(await doomed.exited).toEqual(KILLED);
    expect(await contentOf(fresh)).toBe(content);
    await save(fresh);
    await expectTakenOver(survivor, id, content);
  });

  test("of the requesting server when the head is claimed: the previous owner resumes its saved state", async () => {
    const { survivor, doomed } = await pair("the head is claimed");
    const { client, id } = await survivor.create(HANDOFF);
    await write(client, "new");
    expect(await doomed.attachUntilDead(id)).toEqual(KILLED);
    expect((await client.untilClosed()).slice(-3)).toEqual(["DELETED", "CHECKPOINTED", 1000]);
    await expectTakenOver(survivor, id, "new");
  });

  test("of the requesting server when the owner is asked: its request blocks no other", async () => {
    const { survivor, doomed, store } = await pair("the owner is asked");
    const { client, id } = await survivor.create(HANDOFF);
    await write(client, "new");
    expect(await doomed.attachUntilDead(id)).toEqual(KILLED);
    const third = await startTestServer({ store, leaseTtlMs: LEASE_TTL_MS });
    // As long as the dead one may live, it is the one who waits.
    const fresh = await third.attachWhenFree(id);
    expect(await contentOf(fresh)).toBe("new");
    await eventually("the old copy is ended", () => survivor.backend.runningCount === 0);
    await save(fresh);
    await expectTakenOver(third, id, "new");
  });
});
