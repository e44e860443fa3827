import { expect, test } from "vitest";
import type { AcquireRequest } from "../../../src/backends/backend.ts";
import { WarmSandboxes } from "../../../src/backends/gvisor/warm/warm-sandboxes.ts";
import { newRequest } from "../../backends/contract/context.ts";
import { FakeClock } from "../../lease/fake-clock.ts";

function noneReady(): WarmSandboxes {
  const never = (): Promise<never> => Promise.reject(new Error("None is to be made."));
  const resources = { memoryBytes: 1, cpus: 1, processes: 1, fileBytes: 1, diskBytes: 1 };
  return new WarmSandboxes(
    { max: 4, maxSandboxes: 10, clock: new FakeClock(), onProblem: () => {}, room: () => "free" },
    {
      defaults: { image: "host", resources },
      live: () => 0,
      starter: { freshAhead: never, stateAhead: never },
    },
  );
}

const state = (sizeBytes: number) => ({ id: "state", sizeBytes, load: () => Promise.reject(new Error("Not loaded.")) });

test("a state that is too large for this machine is not asked for, so none is made and nobody waits for one", async () => {
  const warm = noneReady();
  const request: AcquireRequest = { ...newRequest(), tenant: "somebody" };
  await warm.takePrepared(request, state(1), {});
  expect(warm.figures.missed).toBe(1);
  await warm.takePrepared(request, state(Number.MAX_SAFE_INTEGER), {});
  expect(warm.figures.missed).toBe(1);
  await warm.close();
});

test("what the server asks for its own ends takes nothing from users, and does not count", async () => {
  const warm = noneReady();
  const request: AcquireRequest = { ...newRequest(), tenant: "somebody" };
  await warm.take(request, {});
  expect(warm.figures.missed).toBe(1);
  await warm.take({ ...request, apart: true }, {});
  await warm.takePrepared({ ...request, apart: true }, state(1), {});
  expect(warm.figures.missed).toBe(1);
  await warm.close();
});
