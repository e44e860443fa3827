import { describe, expect, test } from "vitest";
import { eventually } from "../../../../../test/kit/eventually.ts";
import { startTestServer } from "../../../../../test/kit/server/test-server.ts";
import { CrashServer } from "./support/crash-server.ts";
import { DURABLE, KILLED, LEASE_TTL_MS, pair, storedSandbox } from "./support/pair.ts";
import type { StepName } from "./support/steps.ts";
import { contentOf, expectTakenOver, headOf, save, write } from "./support/survivor.ts";

const ALWAYS = { ...DURABLE, restart: "always" };

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

test("a killed server's sandbox that promises it runs again without anybody asking", async () => {
  const survivor = await startTestServer({ leaseTtlMs: LEASE_TTL_MS });
  const doomed = await CrashServer.start({ store: survivor.storeFolder ?? "" });
  const { client, id } = await doomed.create(ALWAYS);
  await write(client, "kept");
  await save(client);
  await doomed.attach(id).until("RUNNING");
  doomed.kill("SIGKILL");
  await eventually("the survivor runs it", async () => (await survivor.manager.find(id)).owner?.here === true, 30_000);
  const again = await survivor.attachWhenFree(id);
  expect(await contentOf(again)).toBe("kept");
});
