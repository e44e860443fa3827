import { existsSync, mkdirSync } from "node:fs";
import { join } from "node:path";
import { expect, test } from "vitest";
import { withSetupLock } from "../../src/setup/index.ts";
import { setupFixture } from "./setup-fixture.ts";

test("a second start waits for the first, and reports it", async () => {
  using fixture = setupFixture();
  const events: string[] = [];
  const start = (name: string): Promise<void> =>
    withSetupLock(fixture.context, async () => {
      events.push(`${name} in`);
      await expect.poll(() => fixture.steps.length).toBeGreaterThan(0);
      events.push(`${name} out`);
    });
  await Promise.all([start("a"), start("b")]);
  expect(events).toEqual(["a in", "a out", "b in", "b out"]);
  expect(fixture.steps.map((step) => [step.name, step.state])).toEqual([
    ["set-up lock", "start"],
    ["set-up lock", "done"],
  ]);
});

test("the lock is released when set-up fails", async () => {
  using fixture = setupFixture();
  await expect(withSetupLock(fixture.context, () => Promise.reject(new Error("no")))).rejects.toThrow("no");
  expect(await withSetupLock(fixture.context, () => Promise.resolve("yes"))).toBe("yes");
});

test("the leftovers of a killed set-up are removed", async () => {
  using fixture = setupFixture();
  const left = join(fixture.context.cacheDirectory, "scratch-abc", "deep");
  mkdirSync(left, { recursive: true });
  await withSetupLock(fixture.context, async () => {});
  expect(existsSync(left)).toBe(false);
});
