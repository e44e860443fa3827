import { SandboxerError } from "@sandboxer/protocol";
import { describe, expect, onTestFinished, test } from "vitest";
import type { ObjectStore } from "../../../src/store/store.ts";
import { eventually } from "../../../../../test/kit/eventually.ts";
import { startTestServer, type TestServer } from "../../../../../test/kit/server/test-server.ts";
import { HANDOFF, LEASE_TTL_MS, storedSandbox } from "./support/pair.ts";
import { contentOf, headOf, save, write } from "./support/survivor.ts";
import { meanwhile } from "../../../../../test/kit/meanwhile.ts";

const TICK = "i=0; while true; do i=$((i+1)); echo $i; sleep 0.02; done";

interface CuttableServer {
  readonly server: TestServer;
  readonly cut: (away: boolean) => void;
  /** The keys that it could not change. */
  readonly missed: readonly string[];
}

/** A server whose way to the store can be cut. */
async function cuttableServer(store?: string): Promise<CuttableServer> {
  let away = false;
  const missed: string[] = [];
  const wrapStore = (real: ObjectStore): ObjectStore =>
    new Proxy(real, {
      get: (target, name) => {
        const value: unknown = Reflect.get(target, name);
        if (typeof value !== "function") return value;
        return (...args: unknown[]) => {
          if (away && name === "swapCell") missed.push(String(args[0]));
          if (away) throw new SandboxerError("store_unavailable", "the store is away");
          return Reflect.apply(value, target, args) as unknown;
        };
      },
    });
  const shared = store === undefined ? {} : { store };
  const server = await startTestServer({ leaseTtlMs: LEASE_TTL_MS, wrapStore, ...shared });
  const cut = (isAway: boolean): void => void (away = isAway);
  // A test that fails must not leave a server that cannot drain.
  onTestFinished(() => cut(false));
  return { server, missed, cut };
}

async function lastsLongerThanTheLease(server: TestServer): Promise<void> {
  await eventually("it is frozen", () => server.durable.ownership.instances.frozen);
  await meanwhile(2 * LEASE_TTL_MS);
}

describe("a store that is unavailable for longer than the lease", () => {
  test("if nobody claimed the sandbox, it continues, and no number is missing", async () => {
    const first = await cuttableServer();
    const second = await cuttableServer(first.server.storeFolder);
    const { client, id } = await first.server.create(HANDOFF);
    await client.run("bash", TICK).until("EXECUTION_RUNNING");
    await eventually("it ticks", () => client.output !== "");
    for (const { cut } of [first, second]) cut(true);
    await lastsLongerThanTheLease(first.server);
    const before = client.output;
    for (const { cut } of [first, second]) cut(false);
    await eventually("it ticks again", () => client.output.length > before.length + 20);
    const numbers = client.output.trimEnd().split("\n").map(Number);
    expect(numbers).toEqual(numbers.map((_number, index) => index + 1));
    expect((await headOf(first.server, id)).epoch).toBe(1);
    // Both servers are what they were: a handoff is possible as before.
    await second.server.attach(id).until("RUNNING");
    await eventually("the old copy is ended", () => first.server.backend.runningCount === 0);
  });

  test("if another server claimed it, the old copy is discarded and publishes nothing", async () => {
    const first = await cuttableServer();
    const second = await startTestServer({ leaseTtlMs: LEASE_TTL_MS, store: first.server.storeFolder ?? null });
    const id = await storedSandbox(first.server);
    const old = first.server.attach(id);
    await old.until("RUNNING");
    await write(old, "unsaved");
    first.cut(true);
    const fresh = second.attach(id);
    await fresh.until("RUNNING");
    expect(await contentOf(fresh)).toBe("old");
    const taken = await headOf(second, id);
    first.cut(false);
    const said = await old.untilClosed();
    expect([said[0], said.at(-1)]).toEqual(["LOCK_RENEWAL_ERROR", 4000]);
    await eventually("the old copy is ended", () => first.server.backend.runningCount === 0);
    expect(await headOf(second, id)).toEqual(taken);
    // The server that lost it continues under a new id, and may get it again.
    await write(fresh, "mine");
    await save(fresh);
    await eventually("it lives again", () => !first.server.durable.ownership.instances.frozen);
    const back = first.server.attach(id);
    await back.until("RUNNING");
    expect(await contentOf(back)).toBe("mine");
  });

  test("a save in progress when another server claimed it is not published", async () => {
    const first = await cuttableServer();
    const second = await startTestServer({ leaseTtlMs: LEASE_TTL_MS, store: first.server.storeFolder ?? null });
    const id = await storedSandbox(first.server);
    const old = first.server.attach(id);
    await old.until("RUNNING");
    await write(old, "unsaved");
    const held = Promise.withResolvers<void>();
    first.server.backend.faults.set("snapshot", { until: held.promise });
    await old.send({ action: "checkpoint" }).until("CHECKPOINTING");
    first.cut(true);
    const fresh = second.attach(id);
    await fresh.until("RUNNING");
    const taken = await headOf(second, id);
    first.cut(false);
    await eventually("the old owner knows", () => first.server.instances.held(id) === undefined);
    held.resolve();
    const said = await old.untilClosed();
    expect(said).not.toContain("CHECKPOINTED");
    expect(said.at(-1)).toBe(4000);
    await eventually("the old copy is gone", () => first.server.backend.runningCount === 0);
    expect(await headOf(second, id)).toEqual(taken);
    expect(await contentOf(fresh)).toBe("old");
  });

  test("a restore that fails meanwhile leaves a sandbox that another server can have", async () => {
    const first = await cuttableServer();
    const second = await startTestServer({ leaseTtlMs: LEASE_TTL_MS, store: first.server.storeFolder ?? null });
    const id = await storedSandbox(first.server);
    const held = Promise.withResolvers<void>();
    const error = new SandboxerError("backend_unavailable", "the engine is away");
    first.server.backend.faults.set("acquireFromSnapshot", { until: held.promise, error });
    const failed = first.server.attach(id);
    await eventually("it is claimed", async () => (await headOf(second, id)).owner !== null);
    // The server can neither restore the sandbox nor give it back.
    first.cut(true);
    held.resolve();
    expect(await failed.untilClosed()).toContain("RESTORE_ERROR");
    first.cut(false);
    const fresh = second.attach(id);
    await fresh.until("RUNNING");
    expect(await contentOf(fresh)).toBe("old");
  });

  test("a handoff that fails meanwhile is answered as soon as the store is back", async () => {
    const first = await cuttableServer();
    const second = await startTestServer({ leaseTtlMs: LEASE_TTL_MS, store: first.server.storeFolder ?? null });
    const { id } = await first.server.create(HANDOFF);
    const held = Promise.withResolvers<void>();
    const error = new SandboxerError("checkpoint_failed", "the engine cannot save it");
    first.server.backend.faults.set("snapshot", { until: held.promise, error, times: 1 });
    const refused = second.attach(id);
    await eventually("the owner is asked", async () => first.server.instances?.held(id)?.want !== null);
    // The owner can neither save the sandbox nor say so.
    first.cut(true);
    held.resolve();
    await eventually("it has tried", () => first.missed.includes(`${id}/metadata.json`));
    first.cut(false);
    expect((await refused.untilClosed()).join()).toContain("It was not given up: the engine cannot save it");
    await second.attach(id).until("RUNNING");
  });
});
