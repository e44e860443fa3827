import { spawn, type ChildProcess } from "node:child_process";
import { once } from "node:events";
import { existsSync, mkdtempSync, rmSync, unlinkSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { afterEach, beforeEach, expect, test } from "vitest";
import { acquireFileLock, isFileLockFree } from "../../src/support/file-lock.ts";
import { meanwhile } from "../../../../test/kit/meanwhile.ts";

const MODULE = new URL("../../src/support/file-lock.ts", import.meta.url).href;
let directory: string;
let path: string;
let children: ChildProcess[];

beforeEach(() => {
  directory = mkdtempSync(join(tmpdir(), "file-lock-"));
  path = join(directory, "nested", "lock");
  children = [];
});

afterEach(() => {
  for (const child of children) child.kill("SIGKILL");
  rmSync(directory, { recursive: true });
});

/** A process that takes the lock, says so, and keeps it. */
async function startHolder(): Promise<ChildProcess> {
  const code = `
    const { acquireFileLock } = await import(${JSON.stringify(MODULE)});
    const lock = await acquireFileLock(${JSON.stringify(path)}, { waitMs: 10_000 });
    console.log(lock === undefined ? "refused" : "held");
    setInterval(() => {}, 1000);`;
  const child = spawn(process.execPath, ["--input-type=module", "-e", code], { stdio: ["ignore", "pipe", "pipe"] });
  children.push(child);
  let stderr = "";
  child.stderr.on("data", (data: Buffer) => (stderr += data.toString()));
  const [line] = (await once(child.stdout, "data")) as [Buffer];
  expect(line.toString().trim()).toBe("held");
  expect(stderr).toBe("");
  return child;
}

test("an unheld lock is free, and checking it creates nothing", async () => {
  expect(await isFileLockFree(path)).toBe(true);
  expect(existsSync(path)).toBe(false);
});

test("one holder at a time within a process", async () => {
  const first = await acquireFileLock(path);
  expect(first).toBeDefined();
  expect(await isFileLockFree(path)).toBe(false);
  expect(await acquireFileLock(path)).toBeUndefined();
  expect(await isFileLockFree(path)).toBe(false);
  await first?.release();
  await first?.release();
  const second = await acquireFileLock(path);
  expect(second).toBeDefined();
  await second?.release();
});

test("one holder at a time between processes, until the holder is killed with -9", async () => {
  const holder = await startHolder();
  expect(await isFileLockFree(path)).toBe(false);
  expect(await acquireFileLock(path)).toBeUndefined();

  let waited = 0;
  const onWait = (): void => {
    waited += 1;
    holder.kill("SIGKILL");
  };
  const lock = await acquireFileLock(path, { waitMs: 20_000, onWait });
  expect(lock).toBeDefined();
  expect(waited).toBe(1);
  await lock?.release();
});

test("one of two contenders gets it, and the other after it", async () => {
  const holder = await startHolder();
  const order: string[] = [];
  const contend = async (name: string): Promise<void> => {
    const lock = await acquireFileLock(path, { waitMs: 10_000 });
    order.push(`${name} in`);
    await meanwhile(120);
    order.push(`${name} out`);
    await lock?.release();
  };
  const both = Promise.all([contend("a"), contend("b")]);
  holder.kill("SIGKILL");
  await both;
  expect([
    ["a in", "a out", "b in", "b out"],
    ["b in", "b out", "a in", "a out"],
  ]).toContainEqual(order);
});

test("looking often does not keep others from the lock", async () => {
  const looks = setInterval(() => void isFileLockFree(path), 1);
  try {
    for (let round = 0; round < 50; round++) {
      const lock = await acquireFileLock(path);
      expect(lock).toBeDefined();
      await lock?.release();
    }
  } finally {
    clearInterval(looks);
  }
});

test("a lock file that was removed is created again for the next holder", async () => {
  const first = await acquireFileLock(path);
  unlinkSync(path);
  const second = await acquireFileLock(path);
  expect(second).toBeDefined();
  expect(await isFileLockFree(path)).toBe(false);
  await first?.release();
  expect(await isFileLockFree(path)).toBe(false);
  await second?.release();
});

test("waiting ends with its signal", async () => {
  const lock = await acquireFileLock(path);
  const signal = AbortSignal.timeout(100);
  await expect(acquireFileLock(path, { waitMs: 10_000, signal })).rejects.toThrow();
  await lock?.release();
});
