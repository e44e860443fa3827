import { describe, expect, test } from "vitest";
import { eventually } from "../../../../../test/kit/eventually.ts";
import type { RawClient } from "../../../../../test/kit/server/raw-client.ts";
import { ServerProcess, whyNoEngine } from "../../../../../test/kit/server/server-process.ts";
import { temporaryFolder } from "../../../../../test/kit/temporary-folder.ts";

const missing = whyNoEngine();
if (missing !== undefined) console.warn(`The tests of handoff on gVisor are skipped: ${missing}`);

const HANDOFF = { enable_checkpoint: true, enable_sandbox_handoff: true };
const COUNT = `
import time, sys
for i in range(1, 41):
    print(i, flush=True)
    time.sleep(0.1)
sys.exit(3)
`;

function outputOf(client: RawClient): string {
  return client.events.map((event) => (event.event === "stdout" ? event.data : "")).join("");
}

async function servers(flags: readonly string[]): Promise<[ServerProcess, ServerProcess]> {
  const store = await temporaryFolder();
  return [await ServerProcess.start({ store, flags }), await ServerProcess.start({ store, flags })];
}

/** Its clients may hear of the move before its last process has ended. */
function oldCopyGone(server: ServerProcess): Promise<void> {
  const runs = async (): Promise<boolean> => (await server.engineProcesses()).some((line) => line.includes("boot"));
  return eventually("the old copy is gone", async () => !(await runs()), 30_000);
}

describe.skipIf(missing !== undefined)("handoff on gVisor", () => {
  test("a program moves in the middle of its output, and ends where it is", async () => {
    const [first, second] = await servers([]);
    const { client: old, id } = await first.create(HANDOFF);
    await old.run("python", COUNT).until("EXECUTION_RUNNING");
    await eventually("it counts", () => outputOf(old).includes("5\n"), 30_000);
    const fresh = second.attach(id).send({ action: "reconnect" });
    await fresh.until("EXECUTION_DONE");
    await old.closed;
    const numbers = (outputOf(old) + outputOf(fresh)).trim().split("\n").map(Number);
    expect(numbers).toEqual(Array.from({ length: 40 }, (_, index) => index + 1));
    expect(fresh.events.at(-1)).toMatchObject({ status: "SANDBOX_EXECUTION_DONE", exit_code: 3 });
    await oldCopyGone(first);
  });

  test("a server that was stopped beyond its lease discards its copy and publishes nothing", async () => {
    const [first, second] = await servers(["--lease-ttl", "2s"]);
    const { client: old, id } = await first.create(HANDOFF);
    await old.run("bash", "echo saved > file").until("EXECUTION_DONE");
    await old.send({ action: "checkpoint" }).untilClosed();
    const live = first.attach(id);
    await live.until("RUNNING");
    await live.run("bash", "echo unsaved > file").until("EXECUTION_DONE");
    first.suspend();
    const fresh = second.attach(id);
    await fresh.until("RUNNING");
    expect(await fresh.run("bash", "cat file").until("EXECUTION_DONE")).toContain("out:saved\n");
    first.wake();
    const said = await live.untilClosed();
    expect(said[0]).toBe("LOCK_RENEWAL_ERROR");
    expect(said.at(-1)).toBe(4000);
    await oldCopyGone(first);
    expect(await fresh.run("bash", "echo mine > file; cat file").until("EXECUTION_DONE")).toContain("out:mine\n");
    await fresh.send({ action: "checkpoint" }).untilClosed();
    // The old owner continues as a server, under a new id.
    const back = first.attach(id);
    await back.until("RUNNING");
    expect(await back.run("bash", "cat file").until("EXECUTION_DONE")).toContain("out:mine\n");
  });
});
