import { readdir } from "node:fs/promises";
import { join } from "node:path";
import { isSandboxId } from "@sandboxer/protocol";
import { describe, expect, test } from "vitest";
import { DURABLE, KILLED, pair, storedSandbox } from "./support/pair.ts";
import type { StepName } from "./support/steps.ts";
import { expectTakenOver, headOf, write } from "./support/survivor.ts";

describe("kill -9 during a creation", () => {
  test("before there is a head, nothing is left", async () => {
    const { doomed, store } = await pair("the sandbox is made, its head is not");
    doomed.connect("/create").send(DURABLE);
    expect(await doomed.exited).toEqual(KILLED);
    expect((await readdir(store)).filter(isSandboxId)).toEqual([]);
  });

  test("after it, there is a sandbox without a state and without an owner, which is found", async () => {
    const { survivor, doomed, store } = await pair("the head is made");
    doomed.connect("/create").send(DURABLE);
    expect(await doomed.exited).toEqual(KILLED);
    const [id = ""] = (await readdir(store)).filter(isSandboxId);
    const said = await survivor.attach(id).untilClosed();
    expect([said[0], ...said.slice(-2)]).toEqual(["RESTORING", "NOT_FOUND", 1011]);
    expect(await headOf(survivor, id)).toMatchObject({ epoch: 2, owner: null, checkpoint: null });
    expect(survivor.backend.runningCount).toBe(0);
  });
});

describe("kill -9 during a checkpoint", () => {
  test.each<[StepName, string]>([
    ["the state is saved, nothing of it is in the store", "old"],
    ["half of the image is written", "old"],
    ["the image is written", "old"],
    ["the head is about to be released", "old"],
    ["the head is released", "new"],
    ["latest is written", "new"],
  ])("when %s, another server goes on with %s", async (step, content) => {
    const { survivor, doomed } = await pair(step);
    const id = await storedSandbox(survivor);
    const client = doomed.attach(id);
    await client.until("RUNNING");
    await write(client, "new");
    client.send({ action: "checkpoint" });
    expect(await doomed.exited).toEqual(KILLED);
    await expectTakenOver(survivor, id, content);
  });
});

describe("kill -9 during the save that follows a disconnect", () => {
  test.each<[StepName, string]>([
    ["half of the image is written", "old"],
    ["the head is about to be released", "old"],
    ["the head is released", "new"],
  ])("when %s, another server goes on with %s", async (step, content) => {
    const { survivor, doomed } = await pair(step);
    const id = await storedSandbox(survivor, { ...DURABLE, on_disconnect: "checkpoint" });
    const client = doomed.attach(id);
    await client.until("RUNNING");
    await write(client, "new");
    await client.leave();
    expect(await doomed.exited).toEqual(KILLED);
    await expectTakenOver(survivor, id, content);
  });
});

describe("kill -9 during a release without a save", () => {
  test.each<[StepName]>([["the head is about to be released"], ["the head is released"]])(
    "when %s, another server goes on with the last checkpoint",
    async (step) => {
      const { survivor, doomed } = await pair(step);
      const id = await storedSandbox(survivor, { ...DURABLE, idle_timeout: 2 });
      const client = doomed.attach(id);
      await client.until("RUNNING");
      await write(client, "new");
      expect(await doomed.exited).toEqual(KILLED);
      await expectTakenOver(survivor, id, "old");
    },
  );
});

describe("kill -9 during a destruction", () => {
  test("before the tombstone, the sandbox is at its last checkpoint", async () => {
    const { survivor, doomed } = await pair("the head is about to become a tombstone");
    const id = await storedSandbox(survivor);
    doomed.attach(id).send({ action: "kill_sandbox" });
    expect(await doomed.exited).toEqual(KILLED);
    await expectTakenOver(survivor, id, "old");
  });

  test("after it, no server brings the sandbox back, though its images are stored", async () => {
    const { survivor, doomed, store } = await pair("the head is a tombstone");
    const id = await storedSandbox(survivor);
    doomed.attach(id).send({ action: "kill_sandbox" });
    expect(await doomed.exited).toEqual(KILLED);
    expect(await readdir(join(store, id, "checkpoints"))).toContain("latest");
    expect(await survivor.attach(id).untilClosed()).toEqual(["RESTORING", "NOT_FOUND", 1011]);
    expect(await headOf(survivor, id)).toMatchObject({ state: "deleted", epoch: 3 });
  });
});
