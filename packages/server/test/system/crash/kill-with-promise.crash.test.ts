import type { SandboxRecord } from "@sandboxer/protocol";
import { describe, expect, test } from "vitest";
import { eventually } from "../../../../../test/kit/eventually.ts";
import { startTestServer } from "../../../../../test/kit/server/test-server.ts";
import { CrashServer } from "./support/crash-server.ts";
import { DURABLE, KILLED, LEASE_TTL_MS, pair } from "./support/pair.ts";
import type { StepName } from "./support/steps.ts";
import { contentOf, expectTakenOver, headOf, write } from "./support/survivor.ts";
import { meanwhile } from "../../../../../test/kit/meanwhile.ts";

describe("kill -9 during a checkpoint that leaves the sandbox running", () => {
  test.each<[StepName]>([["half of the image is written"], ["the head is about to name a live checkpoint"]])(
    "when %s, there is no state yet, and the sandbox is nobody's",
    async (step) => {
      const { survivor, doomed } = await pair(step);
      const { client, id } = await doomed.create({ ...DURABLE, max_loss: 1 });
      await write(client, "new");
      expect(await doomed.exited).toEqual(KILLED);
      const said = await survivor.attach(id).untilClosed();
      expect(said.slice(-2)).toEqual(["NOT_FOUND", 1011]);
      expect(await headOf(survivor, id)).toMatchObject({ owner: null, checkpoint: null });
    },
  );

  test("when the head names it, another server continues with it", async () => {
    const { survivor, doomed } = await pair("the head names a live checkpoint");
    const { client, id } = await doomed.create({ ...DURABLE, max_loss: 1 });
    await write(client, "new");
    expect(await doomed.exited).toEqual(KILLED);
    await expectTakenOver(survivor, id, "new");
  });
});

const MAX_LOSS_MS = 4_000;

test("kill -9 at any moment: everything before the newest checkpoint is kept, and no more is lost than promised", async () => {
  const survivor = await startTestServer({ leaseTtlMs: LEASE_TTL_MS });
  const doomed = await CrashServer.start({ store: survivor.storeFolder ?? "" });
  const { client, id } = await doomed.create({ ...DURABLE, max_loss: `${MAX_LOSS_MS / 1000}s` });
  const done: number[] = [];
  const work = async (): Promise<void> => {
    await write(client, String(done.length));
    done.push(Date.now());
  };
  const saved = async (): Promise<string | undefined> => (await headOf(survivor, id)).checkpoint?.name;
  await eventually("it was saved once", async () => (await work().then(saved)) !== undefined, 30_000);
  const first = await saved();
  await eventually("it was saved again", async () => (await work().then(saved)) !== first, 30_000);
  for (const end = Date.now() + 500; Date.now() < end; await meanwhile(20)) await work();

  const askedMs = Date.now();
  const { durability } = await recordOf(doomed, id);
  doomed.kill("SIGKILL");
  expect(await doomed.exited).toEqual(KILLED);
  expect(durability.at_risk).toBeNull();

  const head = await headOf(survivor, id);
  const fresh = survivor.attach(id);
  await fresh.until("RUNNING");
  const content = Number(await contentOf(fresh));
  const savedMs = Date.parse(head.checkpoint?.created_at ?? "");
  // Everything that was acknowledged before the capture is in the state.
  expect(content).toBeGreaterThanOrEqual(done.filter((atMs) => atMs < savedMs).length - 1);
  // The server looks five times in a second whether it keeps its promise, where it gets the processor, and had said that it does.
  const lostMs = askedMs - (done[content] ?? askedMs);
  expect(lostMs).toBeLessThanOrEqual(MAX_LOSS_MS + 3_000);
});

async function recordOf(server: CrashServer, id: string): Promise<SandboxRecord> {
  const response = await fetch(`${server.url.replace(/^ws/, "http")}/v1/sandboxes/${id}`);
  return (await response.json()) as SandboxRecord;
}
