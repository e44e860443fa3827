import { afterEach, beforeEach, expect, test, vi } from "vitest";
import { DiskWatch } from "../../../src/backends/gvisor/disk-limit.ts";

const MIB = 1024 * 1024;
const LIMIT_BYTES = 100 * MIB;
const LONG_MS = 5_000;

/** A writable layer of a given size, with counts of its checks and clears. */
class Disk {
  usedBytes = 0;
  looks = 0;
  kills = 0;
  readonly watch = new DiskWatch(
    { usedBytes: async () => ((this.looks += 1), this.usedBytes) },
    LIMIT_BYTES,
    async () => void (this.kills += 1),
  );
}

beforeEach(() => void vi.useFakeTimers());
afterEach(() => void vi.useRealTimers());

test("nothing is checked during a rest, and checks continue afterwards", async () => {
  const disk = new Disk();
  disk.watch.start();
  await vi.advanceTimersByTimeAsync(LONG_MS);
  const { looks } = disk;
  expect(looks).toBeGreaterThan(0);
  disk.watch.rest();
  disk.usedBytes = LIMIT_BYTES + 50 * MIB;
  await vi.advanceTimersByTimeAsync(LONG_MS);
  expect([disk.looks, disk.kills]).toEqual([looks, 0]);
  disk.watch.start();
  await vi.advanceTimersByTimeAsync(LONG_MS);
  expect(disk.kills).toBe(1);
});

test("usage above the limit that did not grow during a rest is left alone", async () => {
  const disk = new Disk();
  disk.usedBytes = LIMIT_BYTES + 50 * MIB;
  disk.watch.start();
  // It checks again a moment after it has killed.
  await vi.waitUntil(() => disk.looks > 1);
  const { looks } = disk;
  disk.watch.rest();
  disk.watch.start();
  await vi.advanceTimersByTimeAsync(LONG_MS);
  expect([disk.looks > looks, disk.kills]).toEqual([true, 1]);
  disk.usedBytes += 10 * MIB;
  await vi.advanceTimersByTimeAsync(LONG_MS);
  expect(disk.kills).toBe(2);
});

test("a rest that begins and ends during a check leaves one watch", async () => {
  const disk = new Disk();
  let answer = (): void => {};
  let asked = 0;
  const watch = new DiskWatch(
    { usedBytes: () => new Promise((resolve) => ((asked += 1), (answer = () => resolve(0)))) },
    LIMIT_BYTES,
    async () => void (disk.kills += 1),
  );
  watch.start();
  await vi.advanceTimersByTimeAsync(LONG_MS);
  watch.rest();
  watch.start();
  answer();
  await vi.advanceTimersByTimeAsync(LONG_MS);
  expect(asked).toBe(2);
});
