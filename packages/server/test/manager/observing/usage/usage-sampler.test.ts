import { setImmediate } from "node:timers/promises";
import { expect, onTestFinished, test } from "vitest";
import { UsageSampler, type UsageSource } from "../../../../src/manager/observing/usage/usage-sampler.ts";
import { FakeClock } from "../../../lease/fake-clock.ts";

class World {
  readonly clock = new FakeClock();
  readonly asked: Record<string, number> = {};
  readonly sources = new Map<string, UsageSource>();
  readonly sampler = new UsageSampler({
    clock: this.clock,
    sources: () => [...this.sources.values()],
    isHere: (sandboxId) => this.sources.has(sandboxId),
  });

  constructor() {
    onTestFinished(() => this.sampler.stop());
  }

  add(sandboxId: string, { near = true, answer = async (): Promise<void> => {} } = {}): this {
    const stats: UsageSource["stats"] = async () => {
      this.asked[sandboxId] = (this.asked[sandboxId] ?? 0) + 1;
      await answer();
      return { memoryBytes: 1, diskBytes: 2, cpuMs: this.clock.monotonicMs() / 2 };
    };
    this.sources.set(sandboxId, { sandboxId, near, stats });
    return this;
  }

  /** In steps of a second, with everything that follows. */
  async pass(seconds: number): Promise<void> {
    for (let second = 0; second < seconds; second += 1) {
      await setImmediate();
      this.clock.advance(1000);
    }
    await setImmediate();
  }
}

test("without viewers, local sandboxes are sampled every 30 s, remote ones never", async () => {
  const world = new World().add("near").add("far", { near: false });
  await world.pass(301);
  expect(world.asked).toEqual({ near: 10 });
});

test("with a viewer of the list, local ones every 2 s, remote ones every 10 s, for a minute", async () => {
  const world = new World().add("near").add("far", { near: false });
  await world.pass(5);
  world.sampler.all();
  await world.pass(60);
  const { near = 0, far = 0 } = world.asked;
  expect(near).toBeGreaterThanOrEqual(30);
  expect(near).toBeLessThanOrEqual(33);
  expect(far).toBeGreaterThanOrEqual(6);
  expect(far).toBeLessThanOrEqual(7);
  await world.pass(300);
  expect((world.asked["near"] ?? 0) - near).toBeLessThanOrEqual(12);
  expect(world.asked["far"]).toBeLessThanOrEqual(far + 1);
});

test("with a viewer of one sandbox, it is sampled at once and every 2 s, and the others as before", async () => {
  const world = new World().add("watched", { near: false }).add("other", { near: false });
  await world.pass(5);
  world.sampler.of("watched");
  await setImmediate();
  await setImmediate();
  expect(world.asked).toEqual({ watched: 1 });
  await world.pass(20);
  expect(world.asked).toEqual({ watched: 11 });
});

test("a sandbox that does not answer is not sampled again, and delays nobody", async () => {
  const answer = Promise.withResolvers<void>();
  const world = new World();
  for (let number = 0; number < 20; number += 1) world.add(`slow-${number}`, { answer: () => answer.promise });
  world.add("quick").add("broken", { answer: () => Promise.reject(new Error("gone")) });
  world.sampler.all();
  await world.pass(30);
  expect(world.asked["slow-0"]).toBe(1);
  expect(world.asked["quick"]).toBeGreaterThan(5);
  expect(world.asked["broken"]).toBeGreaterThan(5);
  expect(world.sampler.of("broken").points).toEqual([]);
  answer.resolve();
  await world.pass(4);
  expect(world.asked["slow-0"]).toBeGreaterThan(1);
  expect(world.sampler.of("slow-0").points.length).toBeGreaterThan(0);
});

test("a sandbox that left is forgotten, and one that returns starts again", async () => {
  const world = new World().add("a");
  world.sampler.all();
  await world.pass(10);
  expect(world.sampler.all().get("a")?.series.points.length).toBeGreaterThan(3);
  world.sources.clear();
  await world.pass(4);
  expect([...world.sampler.all().keys()]).toEqual([]);
});
