import { mkdtemp, readdir, readFile, rm } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import type { Head } from "@sandboxer/protocol";
import { afterAll, beforeAll, describe, expect, test } from "vitest";
import { REMOVAL } from "../../../../../test/kit/temporary-folder.ts";
import { eventually } from "../../../../../test/kit/eventually.ts";
import { whyNoEngine } from "../../../../../test/kit/server/server-process.ts";
import { CrashServer } from "./support/crash-server.ts";
import { HANDOFF, KILLED } from "./support/pair.ts";
import type { StepName } from "./support/steps.ts";
import { contentOf, save, write } from "./support/survivor.ts";

const missing = whyNoEngine();
if (missing !== undefined) console.warn(`The tests of kill -9 on gVisor are skipped: ${missing}`);

/** The engines that run sandboxes of a server's run directories. */
async function enginesOf({ dataDirectory }: CrashServer): Promise<string[]> {
  const found: string[] = [];
  for (const pid of (await readdir("/proc")).filter((name) => /^\d+$/.test(name))) {
    const command = (await readFile(`/proc/${pid}/cmdline`, "utf8").catch(() => "")).split("\0");
    if (command.includes("boot") && command.some((word) => word.includes(dataDirectory))) found.push(pid);
  }
  return found;
}

async function expectSaved(survivor: CrashServer, store: string, id: string): Promise<void> {
  const client = survivor.attach(id);
  await client.until("RUNNING");
  await write(client, "mine");
  await save(client);
  const head = JSON.parse(await readFile(join(store, id, "metadata.json"), "utf8")) as Head;
  expect(head).toMatchObject({ owner: null, state: "parked", want: null });
  const latest = await readFile(join(store, id, "checkpoints", "latest"), "utf8");
  expect(latest.trim()).toBe(head.checkpoint?.name);
}

describe.skipIf(missing !== undefined)("kill -9 on gVisor", () => {
  let folder: string;
  let store: string;
  // It is killed in no test.
  let survivor: CrashServer;
  const common = { backend: "gvisor", leaseTtl: "2s" } as const;
  beforeAll(async () => {
    folder = await mkdtemp(join(tmpdir(), "sandboxer-test-"));
    store = join(folder, "store");
    survivor = await CrashServer.start({ ...common, store, dataDirectory: join(folder, "data"), until: "stopped" });
  });
  afterAll(async () => {
    await survivor.stop();
    await rm(folder, REMOVAL);
  });

  /** Another server as on another machine, and a sandbox in their store with an acknowledged state that holds `old`. */
  async function pair(dieAt: StepName): Promise<{ doomed: CrashServer; id: string }> {
    const { client, id } = await survivor.create(HANDOFF);
    await write(client, "old");
    await save(client);
    return { id, doomed: await CrashServer.start({ ...common, store, dieAt }) };
  }

  test("of an owner that runs a sandbox: the copy ends automatically, and the requesting server continues", async () => {
    const { doomed, id } = await pair("the request is seen");
    const client = doomed.attach(id);
    await client.until("RUNNING");
    await write(client, "new");
    expect(await enginesOf(doomed)).toHaveLength(1);
    const fresh = survivor.attach(id);
    await fresh.until("RUNNING");
    expect(await doomed.exited).toEqual(KILLED);
    await eventually("no copy runs at the dead server", async () => (await enginesOf(doomed)).length === 0, 30_000);
    expect(await contentOf(fresh)).toBe("old");
    await save(fresh);
    await expectSaved(survivor, store, id);
  });

  test.each<[StepName, string]>([
    ["the image is written", "old"],
    ["the head is released", "new"],
  ])("of an owner that hands a sandbox over, when %s: the newcomer goes on with %s", async (step, content) => {
    const { doomed, id } = await pair(step);
    const client = doomed.attach(id);
    await client.until("RUNNING");
    await write(client, "new");
    const fresh = survivor.attach(id);
    await fresh.until("RUNNING");
    expect(await doomed.exited).toEqual(KILLED);
    expect(await contentOf(fresh)).toBe(content);
    await save(fresh);
    await expectSaved(survivor, store, id);
    // The copy stands still for its save, and cannot end by itself: the next server on that machine ends it.
    await CrashServer.start({ store, backend: "gvisor", dataDirectory: doomed.dataDirectory });
    await eventually("nothing of it is left", async () => (await enginesOf(doomed)).length === 0, 30_000);
  });

  test("of a server that restores, when the image is read: another server restores the same state", async () => {
    const { doomed, id } = await pair("the image is read");
    expect(await doomed.attachUntilDead(id)).toEqual(KILLED);
    const fresh = survivor.attach(id);
    await fresh.until("RUNNING");
    expect(await contentOf(fresh)).toBe("old");
    await save(fresh);
    await expectSaved(survivor, store, id);
  });
});
