import { expect, test } from "vitest";
import { Wakes } from "../../../src/manager/ports/wakes.ts";

test("a hundred paused sandboxes with ten requests each are resumed once, two at a time", async () => {
  const wakes = new Wakes(2);
  const resumed = new Map<string, number>();
  let [running, most] = [0, 0];
  const resume = async (name: string): Promise<void> => {
    running += 1;
    most = Math.max(most, running);
    resumed.set(name, (resumed.get(name) ?? 0) + 1);
    await new Promise((resolve) => setImmediate(resolve));
    running -= 1;
  };
  const asked = Array.from({ length: 1000 }, (_, index) => `sandbox ${index % 100}`);
  await Promise.all(asked.map((name) => wakes.run(name, () => resume(name))));
  expect(most).toBe(2);
  expect(resumed.size).toBe(100);
  expect(new Set(resumed.values())).toEqual(new Set([1]));
});

test("a failed resume fails all its callers, and the next request tries again", async () => {
  const wakes = new Wakes(1);
  const fail = (): Promise<void> => Promise.reject(new Error("no"));
  const results = await Promise.allSettled([wakes.run("a", fail), wakes.run("a", fail)]);
  expect(results.map(({ status }) => status)).toEqual(["rejected", "rejected"]);
  await wakes.run("a", () => Promise.resolve());
});
