import { describe, expect, test } from "vitest";
import { HANDOFF, KILLED, LONG_LEASE_TTL_MS, pair, storedSandbox } from "../system/crash/support/pair.ts";
import type { StepName } from "../system/crash/support/steps.ts";
import { contentOf, expectTakenOver, headOf, save, write } from "../system/crash/support/survivor.ts";
import { fakeGcsServer } from "../../../../test/kit/store-servers/fake-gcs-server.ts";
import { minio } from "../../../../test/kit/store-servers/minio.ts";
import { withServer } from "../../../../test/kit/store-servers/with-server.ts";

/** The steps at which a bucket may show something else than a folder; test/system/crash has all of them, on a folder. */
for (const server of [minio, fakeGcsServer]) {
  withServer(server, (running) => {
    describe("kill -9 of an owner that saves", () => {
      test.each<[StepName, string]>([
        ["half of the image is written", "old"],
        ["the head is about to be released", "old"],
        ["the head is released", "new"],
      ])("when %s: another server goes on with %s", async (step, content) => {
        const { survivor, doomed } = await pair(step, "dieAt", await running().newStore());
        const id = await storedSandbox(survivor);
        const client = doomed.attach(id);
        await client.until("RUNNING");
        await write(client, "new");
        client.send({ action: "checkpoint" });
        expect(await doomed.exited).toEqual(KILLED);
        await expectTakenOver(survivor, id, content);
      });
    });

    test("kill -9 of a yielding owner, when the head is released: the requesting server continues", async () => {
      const store = await running().newStore();
      const { survivor, doomed } = await pair("the head is released", "dieAt", store, LONG_LEASE_TTL_MS);
      const { client, id } = await doomed.create(HANDOFF);
      await write(client, "new");
      const fresh = survivor.attach(id);
      await fresh.until("RUNNING");
      expect(await doomed.exited).toEqual(KILLED);
      expect(await contentOf(fresh)).toBe("new");
      await save(fresh);
    });

    test("kill -9 of a newcomer when the head is claimed: another one restores the same state", async () => {
      const { survivor, doomed } = await pair("the head is claimed", "dieAt", await running().newStore());
      const id = await storedSandbox(survivor);
      expect(await doomed.attachUntilDead(id)).toEqual(KILLED);
      expect((await headOf(survivor, id)).owner).not.toBeNull();
      await expectTakenOver(survivor, id, "old");
    });
  });
}
