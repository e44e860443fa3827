import { execFile } from "node:child_process";
import { readFile } from "node:fs/promises";
import { join } from "node:path";
import { promisify } from "node:util";
import { describe, expect, test } from "vitest";
import { Instances } from "../../../src/lease/instances.ts";
import { instanceIdOf, INSTANCES_FOLDER } from "../../../src/lease/liveness-record.ts";
import { openStore } from "../../../src/store/open-store.ts";
import { systemClock } from "../../../src/support/clock.ts";
import { eventually } from "../../../../../test/kit/eventually.ts";
import { ServerProcess, whyNoEngine } from "../../../../../test/kit/server/server-process.ts";
import { temporaryFolder } from "../../../../../test/kit/temporary-folder.ts";

const missing = whyNoEngine();
if (missing !== undefined) console.warn(`The tests of a server's life on gVisor are skipped: ${missing}`);

const DURABLE = { enable_checkpoint: true };

describe.skipIf(missing !== undefined)("on gVisor", () => {
  test("after kill -9 a new server cleans up, and knows the stored sandboxes", async () => {
    const [store, dataHome] = [await temporaryFolder(), await temporaryFolder()];
    const first = await ServerProcess.start({ store, dataHome, warm: true });
    const { client: stored, id: storedId } = await first.create(DURABLE);
    await stored.run("bash", "echo saved > file").until("EXECUTION_DONE");
    await stored.send({ action: "checkpoint" }).untilClosed();
    const live = first.attach(storedId);
    await live.until("RUNNING");
    await live.run("bash", "echo unsaved > file; sleep 1000").until("EXECUTION_RUNNING");
    const { id: neverSaved } = await first.create(DURABLE);
    const { client: other } = await first.create();
    await other.run("bash", "sleep 1000").until("EXECUTION_RUNNING");
    const [before] = await first.runDirectories();
    expect(await first.engineProcesses()).not.toEqual([]);
    await first.killHard();

    const second = await ServerProcess.start({ store, dataHome });
    await eventually(
      "nothing of the dead server runs",
      async () => (await second.engineProcesses()).every((line) => !line.includes(before ?? "?")),
      30_000,
    );
    expect(await second.runDirectories()).not.toContain(before);
    const again = second.attach(storedId);
    expect(await again.until("RUNNING")).toEqual(["RESTORING", "RUNNING"]);
    expect(await again.run("bash", "cat file").until("EXECUTION_DONE")).toContain("out:saved\n");
    expect(await second.attach(neverSaved).untilClosed()).toEqual(["RESTORING", "NOT_FOUND", 1011]);
    expect(await second.stop()).toBe(0);
    await eventually("nothing runs any more", async () => (await second.engineProcesses()).length === 0, 30_000);
    expect(await second.runDirectories()).toEqual([]);
  });

  test("nobody waits for the lease of a server that was killed after it had been fenced", async () => {
    const [folder, dataHome] = [await temporaryFolder(), await temporaryFolder()];
    const first = await ServerProcess.start({ store: folder, dataHome, flags: ["--lease-ttl", "3s"] });
    const store = await openStore(folder);
    const nothing = (): void => {};
    const other = await Instances.register({
      store,
      clock: systemClock,
      ttlMs: 60_000,
      url: null,
      onFenced: nothing,
      onError: nothing,
    });
    const idsOfFirst = async (): Promise<string[]> => {
      const ids: string[] = [];
      for await (const key of store.listCells(INSTANCES_FOLDER)) ids.push(instanceIdOf(key));
      return ids.filter((id) => id !== other.instanceId);
    };
    const [firstId = ""] = await idsOfFirst();
    await other.markDead(firstId);
    await eventually("it goes on under a new id", async () => (await idsOfFirst()).length === 2, 30_000);
    const laterId = (await idsOfFirst()).find((id) => id !== firstId) ?? "";
    await eventually("its folder says so", async () => (await laterIdsIn(first)).includes(laterId), 30_000);
    await first.killHard();
    expect(await other.isDead(laterId)).toBe(false);
    await ServerProcess.start({ store: folder, dataHome });
    expect(await other.isDead(laterId)).toBe(true);
    await other.close();
  });

  test("nothing of a killed server keeps running, not even a paused sandbox", async () => {
    const server = await ServerProcess.start();
    await server.create();
    const kernel =
      (await server.engineProcesses())
        .find((line) => line.includes(" boot "))
        ?.trim()
        .split(" ") ?? [];
    const state = kernel.find((argument) => argument.startsWith("--root=")) ?? "";
    await promisify(execFile)(process.env["SANDBOXER_TEST_RUNSC"] ?? "", [state, "pause", kernel.at(-1) ?? ""]);
    await server.killHard();
    await eventually("nothing runs", async () => (await server.engineProcesses()).length === 0, 30_000);
  });

  test("a server on another machine takes over from one that was killed, after its lease", async () => {
    const store = await temporaryFolder();
    const flags = ["--lease-ttl", "2s"];
    const [first, second] = [await ServerProcess.start({ store, flags }), await ServerProcess.start({ store, flags })];
    const { client, id } = await first.create(DURABLE);
    await client.run("bash", "echo saved > file").until("EXECUTION_DONE");
    await client.send({ action: "checkpoint" }).untilClosed();
    await first.attach(id).until("RUNNING");
    expect(await second.attach(id).untilClosed()).toEqual(["RESTORING", "IN_USE", 1011]);
    await first.killHard();
    await eventually(
      "the lease is over",
      async () => {
        const again = second.attach(id);
        if (!(await again.outcome()).includes("RUNNING")) return false;
        expect(await again.run("bash", "cat file").until("EXECUTION_DONE")).toContain("out:saved\n");
        return true;
      },
      60_000,
    );
  });

  test("SIGTERM ends every kind of sandbox, informs its client, and exits with 0", async () => {
    const server = await ServerProcess.start({ store: await temporaryFolder(), warm: true });
    const { client: durable } = await server.create(DURABLE);
    const { client: other } = await server.create();
    await other.run("bash", "sleep 1000").until("EXECUTION_RUNNING");
    expect(await server.stop()).toBe(0);
    expect(await durable.untilClosed()).toEqual(["CHECKPOINTING", "CHECKPOINTED", 1012]);
    expect(await other.untilClosed()).toEqual(["DELETING", "DELETED", 1012]);
    expect(await server.engineProcesses()).toEqual([]);
    expect(await server.runDirectories()).toEqual([]);
  });

  test("a killed engine is reported to its client, and others continue", async () => {
    const server = await ServerProcess.start();
    const { client } = await server.create();
    const before = await server.engineProcesses();
    const { client: other } = await server.create();
    await client.run("bash", "sleep 1000").until("EXECUTION_RUNNING");
    // Helpers of its start may have ended since.
    const still = new Set(await server.engineProcesses());
    for (const line of before.filter((each) => still.has(each))) process.kill(Number(line.split(" ")[0]), "SIGKILL");
    expect(await client.untilClosed()).toEqual(["ERROR", expect.stringMatching(/^error:./), 4000]);
    expect(await other.run("bash", "echo on").until("EXECUTION_DONE")).toContain("out:on\n");
  });
});

async function laterIdsIn(server: ServerProcess): Promise<string> {
  const [folder = ""] = await server.runDirectories();
  const path = join(server.dataHome, "sandboxer", "run", folder, "later-instance-ids");
  return await readFile(path, "utf8").catch(() => "");
}
