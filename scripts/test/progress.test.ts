import { expect, test, vi } from "vitest";
import { withProgress } from "../../test/kit/progress.ts";

test("long work reports that it continues, and its end", async () => {
  vi.useFakeTimers({ toFake: ["setInterval", "clearInterval", "performance"] });
  const lines: string[] = [];
  const work = Promise.withResolvers<number>();
  const done = withProgress(
    (line) => lines.push(line),
    "building MinIO",
    () => work.promise,
  );
  vi.advanceTimersByTime(61_000);
  work.resolve(7);
  expect(await done).toBe(7);
  vi.advanceTimersByTime(61_000);
  vi.useRealTimers();
  expect(lines).toEqual([
    "set-up: still building MinIO (30 s)",
    "set-up: still building MinIO (60 s)",
    "set-up: done building MinIO (61 s)",
  ]);
});
