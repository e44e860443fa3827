import { describe, expect, test } from "vitest";
import { eventually } from "../../../../../test/kit/eventually.ts";
import { startTestServer } from "../../../../../test/kit/server/test-server.ts";
import { DURABLE, KILLED, LEASE_TTL_MS, pair, storedSandbox } from "./support/pair.ts";
import type { StepName } from "./support/steps.ts";
import { expectTakenOver, headOf, write } from "./support/survivor.ts";

describe("kill -9 during a drain", () => {
  test.each<[StepName, string]>([
    ["the image is written", "old"],
    ["the head is about to be released", "old"],
    ["the head is released", "new"],
  ])("when %s, another server continues with %s", async (step, content) => {
    const { survivor, doomed } = await pair(step);
    const id = await storedSandbox(survivor);
    const client = doomed.attach(id);
    await client.until("RUNNING");
    await write(client, "new");
    doomed.kill("SIGTERM");
    expect(await doomed.exited).toEqual(KILLED);
    await expectTakenOver(survivor, id, content);
  });

  test("of the newcomer when it has claimed the sandbox: a third server continues", async () => {
    const { survivor: leaving, doomed, store } = await pair("the head is claimed");
    const { client, id } = await leaving.create(DURABLE);
    await write(client, "new");
    await eventually("it knows the other", () => leaving.instances.liveOthers.length === 1);
    expect(await leaving.drain()).toEqual([]);
    expect(await doomed.exited).toEqual(KILLED);
    const third = await startTestServer({ store, leaseTtlMs: LEASE_TTL_MS });
    expect((await headOf(third, id)).owner).not.toBeNull();
    await expectTakenOver(third, id, "new");
  });
});
