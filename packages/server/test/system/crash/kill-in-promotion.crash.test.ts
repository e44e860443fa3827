import type { CreatedSandboxRecord } from "@sandboxer/protocol";
import { describe, expect, test } from "vitest";
import { eventually } from "../../../../../test/kit/eventually.ts";
import { SnapshotClient } from "../../gateway/http/snapshot-client.ts";
import { DURABLE, KILLED, LONG_LEASE_TTL_MS, pair } from "./support/pair.ts";
import type { StepName } from "./support/steps.ts";
import { contentOf, expectTakenOver, headOf } from "./support/survivor.ts";

describe("kill -9 during a promotion", () => {
  test.each<[StepName, string]>([
    ["a snapshot's image is written", "old"],
    ["the image is written", "old"],
    ["the head is about to name a promotion", "old"],
    ["the head names a promotion", "new"],
    ["the head is a tombstone", "new"],
  ])("when %s, the original has its %s state, and the winner's is not lost", async (step, content) => {
    // Nobody is found dead by waiting: a server that only gets no processor for a while must not be.
    const { survivor, doomed } = await pair(step, "dieAt", undefined, LONG_LEASE_TTL_MS);
    const api = new SnapshotClient(survivor);
    const { id } = await api.http.create(DURABLE);
    await api.sandbox(id).exec({ shell: "echo old > file" });
    const fork = await api.call<{ items: CreatedSandboxRecord[] }>("POST", `/v1/sandboxes/${id}/fork`, {});
    const winner = fork.body.items[0]?.id ?? "";
    await api.sandbox(winner).exec({ shell: "echo new > file" });
    for (const each of [id, winner]) await api.call("POST", `/v1/sandboxes/${each}/checkpoint`);

    const there = new SnapshotClient({ httpUrl: doomed.url.replace(/^ws/, "http") });
    const promoting = there.call("POST", `/v1/sandboxes/${id}/promote`, { winner });
    await expect(promoting).rejects.toThrow();
    expect(await doomed.exited).toEqual(KILLED);
    const owners = [await headOf(survivor, id), await headOf(survivor, winner)].map(({ owner }) => owner);
    for (const owner of new Set(owners)) if (owner !== null) await survivor.instances.markDead(owner);

    if (content === "old") {
      const client = survivor.attach(winner);
      await client.until("RUNNING");
      expect(await contentOf(client)).toBe("new");
      await client.send({ action: "kill_sandbox" }).untilClosed();
    }
    await expectTakenOver(survivor, id, content);
    await eventually("the winner is deleted", async () => (await headOf(survivor, winner)).state === "deleted");
  });
});
