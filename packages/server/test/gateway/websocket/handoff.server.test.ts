import { SandboxerError } from "@sandboxer/protocol";
import { describe, expect, test, vi } from "vitest";
import { untilStill } from "../../backends/contract/programs.ts";
import { heldSwap } from "../../manager/support/held-call.ts";
import { eventually } from "../../../../../test/kit/eventually.ts";
import type { RawClient } from "../../../../../test/kit/server/raw-client.ts";
import {
  startTestServer,
  type TestServer,
  type TestServerOptions,
} from "../../../../../test/kit/server/test-server.ts";

const DURABLE = { enable_checkpoint: true };
const HANDOFF = { ...DURABLE, enable_sandbox_handoff: true };
const COUNT = "for i in $(seq 1 20); do echo $i; sleep 0.05; done; exit 7";
const COUNTED = Array.from({ length: 20 }, (_, index) => `${index + 1}\n`).join("");

/** Two servers on one store; short leases, so that nobody waits long. */
async function pair(options: TestServerOptions = {}): Promise<[TestServer, TestServer]> {
  const first = await startTestServer({ leaseTtlMs: 3_000, ...options });
  const second = await startTestServer({ leaseTtlMs: 3_000, ...options, store: first.storeFolder ?? null });
  return [first, second];
}

function outputOf(client: RawClient): string {
  return client.events.map((event) => (event.event === "stdout" ? event.data : "")).join("");
}

describe("handoff between live servers", () => {
  test("an attached sandbox moves, and both sides get the messages of the table", async () => {
    const [first, second] = await pair();
    const { client: old, id } = await first.create(HANDOFF);
    const fresh = second.attach(id);
    expect(await fresh.until("RUNNING")).toEqual([
      "RESTORING",
      "LOCK_ACQUIRING",
      "HANDOFF_IN_PROGRESS",
      "LOCK_ACQUIRED",
      "RUNNING",
    ]);
    expect(await old.untilClosed()).toEqual([
      "LOCK_RELEASE_REQUESTED",
      "CHECKPOINTING",
      "DELETING",
      "LOCK_RELEASING",
      "LOCK_RELEASED",
      "DELETED",
      "CHECKPOINTED",
      1000,
    ]);
    await eventually("the old copy is ended", () => first.backend.runningCount === 0);
    expect((await second.durable.ownership.read(id))?.epoch).toBe(2);
  });

  test("a running execution moves along, and no byte of its output is lost or repeated", async () => {
    const [first, second] = await pair();
    const { client: old, id } = await first.create(HANDOFF);
    await old.run("bash", COUNT).until("EXECUTION_RUNNING");
    await eventually("it has printed", () => outputOf(old).includes("3\n"));
    const fresh = second.attach(id).send({ action: "reconnect" });
    await fresh.until("EXECUTION_DONE");
    await old.closed;
    expect(outputOf(old) + outputOf(fresh)).toBe(COUNTED);
    const done = fresh.events.at(-1);
    expect(done).toMatchObject({ status: "SANDBOX_EXECUTION_DONE", exit_code: 7 });
  });

  test("a newcomer that executes without reconnect leaves the earlier execution in the background", async () => {
    const [first, second] = await pair();
    const { client: old, id } = await first.create(HANDOFF);
    await old.run("bash", "read x; yes | head -c 3000000; echo end > /workspace/end").until("EXECUTION_RUNNING");
    const fresh = second.attach(id);
    await fresh.until("RUNNING");
    fresh.send({ event: "stdin", data: "go\n" });
    expect(await fresh.run("bash", "echo mine").until("EXECUTION_DONE")).toEqual([
      "EXECUTION_RUNNING",
      "out:mine\n",
      "EXECUTION_DONE",
    ]);
    const isThere = async (): Promise<boolean> => {
      await fresh.run("bash", "cat /workspace/end").until("EXECUTION_DONE");
      return outputOf(fresh).includes("end\n");
    };
    // It prints more than a log holds: the server reads it, or it would never end.
    await eventually("the one from before has ended", isThere);
    expect(await fresh.send({ action: "reconnect" }).until("EXECUTION_DONE")).toEqual(["EXECUTION_DONE"]);
  });

  test("without the flag a free sandbox moves, without the LOCK statuses", async () => {
    const [first, second] = await pair();
    const { client: old, id } = await first.create(DURABLE);
    await old.run("bash", "echo kept > note").until("EXECUTION_DONE");
    old.terminate();
    const fresh = second.attach(id);
    const said = await fresh.outcome();
    // The first server may not have noticed yet that its client disconnected.
    if (said.includes("IN_USE")) {
      const again = second.attach(id);
      expect(await again.until("RUNNING")).toEqual(["RESTORING", "HANDOFF_IN_PROGRESS", "RUNNING"]);
    } else expect(said).toEqual(["RESTORING", "HANDOFF_IN_PROGRESS", "RUNNING"]);
    await eventually("the old copy is ended", () => first.backend.runningCount === 0);
  });

  test("without the flag a sandbox with a client stays, and its client notices nothing", async () => {
    const [first, second] = await pair();
    const { client: old, id } = await first.create(DURABLE);
    expect(await second.attach(id).untilClosed()).toEqual(["RESTORING", "IN_USE", 1011]);
    await old.run("bash", "echo here").until("EXECUTION_DONE");
    expect(outputOf(old)).toBe("here\n");
  });

  test("an owner whose save fails keeps the sandbox, and the newcomer gets the reason", async () => {
    const [first, second] = await pair();
    const { client: old, id } = await first.create(HANDOFF);
    first.backend.faults.set("snapshot", { error: new SandboxerError("no_space", "the disk is full"), times: 1 });
    const fresh = second.attach(id);
    const said = await fresh.untilClosed();
    expect(said.slice(0, 3)).toEqual(["RESTORING", "LOCK_ACQUIRING", "RESTORE_ERROR"]);
    expect(said.at(-1)).toBe(4000);
    expect(fresh.events.find((event) => event.event === "error")).toMatchObject({
      message: expect.stringContaining("the disk is full"),
    });
    await old.closed;
    expect(first.backend.runningCount).toBe(1);
    const again = await first.attachWhenFree(id);
    await again.run("bash", "echo alive").until("EXECUTION_DONE");
    expect(outputOf(again)).toBe("alive\n");
  });

  test("an owner that does not yield in time keeps it", async () => {
    const [first, second] = await pair({ handoffTimeoutMs: 300 });
    const { id } = await first.create(HANDOFF);
    const held = Promise.withResolvers<void>();
    first.backend.faults.set("snapshot", { until: held.promise });
    const fresh = second.attach(id);
    const said = await fresh.untilClosed();
    held.resolve();
    expect(said.slice(0, 3)).toEqual(["RESTORING", "LOCK_ACQUIRING", "RESTORE_ERROR"]);
    expect(said.at(-1)).toBe(4000);
  });

  test("a wrong token moves nothing, and the owner notices nothing", async () => {
    const [first, second] = await pair();
    const { client: old, id } = await first.create(HANDOFF);
    const said = await second.attach(id, "?sandbox_token=00").untilClosed();
    expect(said[0]).toBe("PERMISSION_DENIAL_ERROR");
    await old.run("bash", "echo mine").until("EXECUTION_DONE");
    expect((await first.durable.ownership.read(id))?.want).toBeNull();
  });

  test("a client that returns before the old server knows of its release waits for it", async () => {
    const released = heldSwap((key, { state }) => key.endsWith("/metadata.json") && state === "parked", "after");
    const first = await startTestServer({ wrapStore: released.wrapStore });
    const second = await startTestServer({ store: first.storeFolder ?? null });
    const { client: old, id } = await first.create(HANDOFF);
    const fresh = second.attach(id);
    await fresh.until("RUNNING");
    const read = vi.spyOn(first.durable.ownership, "read");
    const back = first.attach(id);
    const isSeen = (): boolean => read.mock.settledResults.some(({ type }) => type === "fulfilled");
    await eventually("the old server has seen in the store that it gave the sandbox up", isSeen);
    released.release();
    await back.until("RUNNING");
    await Promise.all([old.closed, fresh.closed]);
    expect((await first.durable.ownership.read(id))?.epoch).toBe(3);
  });

  test("back and forth ten times, and a counter in the background never stops", async () => {
    const servers = await pair({ handoffTimeoutMs: 60_000 });
    const { client, id } = await servers[0].create(HANDOFF);
    await client
      .run("bash", "x=0; while true; do x=$((x+1)); echo $x > count; sleep 0.01; done &")
      .until("EXECUTION_DONE");
    for (let round = 1; round <= 10; round++) {
      const server = servers[round % 2 === 0 ? 0 : 1];
      const next = server.attach(id);
      await next.until("RUNNING");
      await next.run("bash", "cat count").until("EXECUTION_DONE");
    }
    expect((await servers[0].durable?.ownership.read(id))?.epoch).toBe(11);
    // The last owner's copy is frozen, and ends after the newcomer has the sandbox.
    const running = (): number => servers[0].backend.runningCount + servers[1].backend.runningCount;
    await eventually("one copy is left", () => running() === 1);
  });
});

describe("a server that cannot prove that it is alive", () => {
  test("is silent until it can, and then continues", async () => {
    let away = false;
    const server = await startTestServer({
      leaseTtlMs: 1_000,
      wrapStore: (store) =>
        new Proxy(store, {
          get: (target, name) => {
            const method = Reflect.get(target, name) as unknown;
            if (typeof method !== "function") return method;
            return (...args: unknown[]) => {
              if (away) throw new SandboxerError("store_unavailable", "the store is away");
              return Reflect.apply(method, target, args) as unknown;
            };
          },
        }),
    });
    const { client, id } = await server.create(DURABLE);
    await client.run("bash", "while true; do echo tick; sleep 0.02; done").until("EXECUTION_RUNNING");
    await eventually("it ticks", () => outputOf(client).length > 0);
    away = true;
    await eventually("it is frozen", () => server.durable.ownership.instances.frozen);
    await untilStill(() => outputOf(client).length, "silence");
    const before = outputOf(client).length;
    away = false;
    await eventually("it ticks again", () => outputOf(client).length > before);
    expect((await server.durable.ownership.read(id))?.epoch).toBe(1);
  });
});
