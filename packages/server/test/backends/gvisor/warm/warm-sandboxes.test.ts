import { expect, test } from "vitest";
import type { AcquireRequest } from "../../../../src/backends/backend.ts";
import { WarmSandboxes } from "../../../../src/backends/gvisor/warm/warm-sandboxes.ts";
import { newRequest } from "../../contract/context.ts";
import { FakeClock } from "../../../lease/fake-clock.ts";
import { settle } from "./pool-lab.ts";

function noneReady(): WarmSandboxes {
  const never = (): Promise<never> => Promise.reject(new Error("None is to be made."));
  const resources = { memoryBytes: 1, cpus: 1, processes: 1, fileBytes: 1, diskBytes: 1 };
  return new WarmSandboxes(
    { max: 4, maxSandboxes: 10, clock: new FakeClock(), onProblem: () => {}, room: () => "free" },
    {
      defaults: { image: "host", resources },
      live: () => 0,
      starter: { ownsNetwork: () => false, freshAhead: never, stateAhead: never },
    },
  );
}

const state = (sizeBytes: number) => ({ id: "state", sizeBytes, load: () => Promise.reject(new Error("Not loaded.")) });

test("a state that is too large for this machine is not preloaded, and nobody waits for it", async () => {
  const warm = noneReady();
  const request: AcquireRequest = { ...newRequest(), tenant: "somebody" };
  await warm.takePrepared(request, state(1), {});
  expect(warm.figures.missed).toBe(1);
  await warm.takePrepared(request, state(Number.MAX_SAFE_INTEGER), {});
  expect(warm.figures.missed).toBe(1);
  await warm.close();
});

test("sandboxes for the server itself take nothing from users, and do not count", async () => {
  const warm = noneReady();
  const request: AcquireRequest = { ...newRequest(), tenant: "somebody" };
  await warm.take(request, {});
  expect(warm.figures.missed).toBe(1);
  await warm.take({ ...request, skipWarmPool: true }, {});
  await warm.takePrepared({ ...request, skipWarmPool: true }, state(1), {});
  expect(warm.figures.missed).toBe(1);
  await warm.close();
});

/** A server with a limit of ten sandboxes, and this many on other backends. */
function openPool() {
  const clock = new FakeClock();
  const made: { destroyed: boolean }[] = [];
  const ending = Promise.withResolvers<void>();
  const freshAhead = async () => {
    const sandbox = {
      destroyed: false,
      ended: new Promise<void>(() => {}),
      become: async () => {},
      destroy: async () => {
        await ending.promise;
        sandbox.destroyed = true;
      },
    };
    made.push(sandbox);
    return sandbox as never;
  };
  const server = { sandboxes: 0 };
  const warm = new WarmSandboxes(
    { max: 4, maxSandboxes: 10, sandboxes: () => server.sandboxes, clock, onProblem: () => {}, room: () => "free" },
    {
      defaults: { image: "host", resources: { memoryBytes: 1, cpus: 1, processes: 1, fileBytes: 1, diskBytes: 1 } },
      live: () => 0,
      starter: {
        ownsNetwork: () => false,
        freshAhead,
        stateAhead: () => Promise.reject(new Error("None is to be made.")),
      },
    },
  );
  const pass = async (ms: number): Promise<void> => {
    for (let passed = 0; passed < ms; passed += 100) {
      await settle();
      clock.advance(100);
    }
    await settle();
  };
  return { warm, server, made, ending, pass };
}

test("sandboxes of other backends count: nothing is created when they take all places", async () => {
  const { warm, server, pass, ending } = openPool();
  server.sandboxes = 8;
  for (let count = 0; count < 4; count++) await warm.take(newRequest(), {});
  await pass(5_000);
  expect(warm.figures.ready).toBe(2);
  server.sandboxes = 10;
  await pass(2_000);
  expect(warm.figures.ready).toBe(0);
  ending.resolve();
  await warm.close();
});

test("a ready one ends before another is created in its place, and stays if there is room", async () => {
  const { warm, server, made, pass, ending } = openPool();
  for (let count = 0; count < 4; count++) await warm.take(newRequest(), {});
  await pass(5_000);
  expect(warm.figures.ready).toBe(4);
  server.sandboxes = 6;
  await warm.giveWay();
  expect(warm.figures.ready).toBe(4);
  server.sandboxes = 9;
  let isFree = false;
  const waiting = warm.giveWay().then(() => (isFree = true));
  await settle();
  expect([isFree, warm.figures.ready]).toEqual([false, 1]);
  ending.resolve();
  await waiting;
  expect(made.filter(({ destroyed }) => destroyed)).toHaveLength(3);
  await warm.close();
});
