import { chmod, mkdir, mkdtemp, rename, rm, rmdir, writeFile } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { afterEach, beforeEach, expect, test } from "vitest";
import { type TestAgent, startAgent } from "./support/agent.ts";
import { Reader, Type, str, u32, u64, u8 } from "./support/wire.ts";

let folder: string;
beforeEach(async () => {
  folder = await mkdtemp(join(tmpdir(), "agent-changes-"));
});
afterEach(() => rm(folder, { recursive: true, force: true }));

const watch = async (agent: TestAgent, path = folder) =>
  (await agent.call(Type.watch, u8(1), str(path))).readUInt32LE();
const changes = (agent: TestAgent) =>
  agent.events
    .filter((event) => event.type === Type.change)
    .map(({ payload }) => {
      const reader = new Reader(payload);
      return [reader.u32(), reader.u8(), reader.str()] as const;
    });
const named = (agent: TestAgent, name: string) =>
  changes(agent).flatMap(([, flags, of]) => (of === name ? [flags] : []));

test("a watch reports changes of names in a folder", async () => {
  const agent = await startAgent();
  const number = await watch(agent);
  await writeFile(join(folder, "a"), "x");
  await chmod(join(folder, "a"), 0o600);
  await rename(join(folder, "a"), join(folder, "b"));
  await mkdir(join(folder, "inner"));
  await rm(join(folder, "b"));
  await agent.until("the removal", () => named(agent, "b").includes(4));
  expect(named(agent, "a")).toEqual([1, 2, 16, 8]);
  expect(named(agent, "b")).toEqual([1, 4]);
  expect(named(agent, "inner")).toEqual([1 | 32]);
  expect(new Set(changes(agent).map(([watched]) => watched))).toEqual(new Set([number]));
});

test("a folder has one number, and is reported until each of its watches has ended", async () => {
  const agent = await startAgent();
  const number = await watch(agent);
  expect(await watch(agent, `${folder}/.`)).toBe(number);
  await agent.call(Type.unwatch, u32(number));
  await mkdir(join(folder, "told"));
  await agent.until("a change", () => named(agent, "told").length > 0);
  await agent.call(Type.unwatch, u32(number));
  await mkdir(join(folder, "not-told"));
  await expect(agent.call(Type.unwatch, u32(number))).rejects.toMatchObject({ errno: 22 });
  expect(named(agent, "not-told")).toEqual([]);
});

test("a watch ends with its folder", async () => {
  const agent = await startAgent();
  const number = await watch(agent);
  await rmdir(folder);
  await agent.until("the end", () => changes(agent).some(([, flags]) => flags === 64));
  expect(changes(agent)).toEqual([
    [number, 4, ""],
    [number, 64, ""],
  ]);
  await expect(agent.call(Type.unwatch, u32(number))).rejects.toMatchObject({ errno: 22 });
});

test("a file, a missing folder and a cut payload are refused", async () => {
  const agent = await startAgent();
  await writeFile(join(folder, "file"), "");
  await expect(watch(agent, join(folder, "file"))).rejects.toMatchObject({ errno: 20 });
  await expect(watch(agent, join(folder, "missing"))).rejects.toMatchObject({ errno: 2 });
  await expect(agent.call(Type.watch, u8(1))).rejects.toMatchObject({ errno: 74 });
  await expect(agent.call(Type.unwatch, u32(0))).rejects.toMatchObject({ errno: 22 });
});

test("a new host gets no changes of folders that the previous host watched", async () => {
  const agent = await startAgent();
  const number = await watch(agent);
  await agent.call(Type.restored, u64(1), str(""), str(""));
  await mkdir(join(folder, "inner"));
  await expect(agent.call(Type.unwatch, u32(number))).rejects.toMatchObject({ errno: 22 });
  expect(changes(agent)).toEqual([]);
});

test("changes wait while the agent is quiesced", async () => {
  const agent = await startAgent();
  await watch(agent);
  await agent.call(Type.quiesce);
  await mkdir(join(folder, "inner"));
  await agent.call(Type.resume);
  await agent.until("the change", () => named(agent, "inner").length > 0);
  expect(named(agent, "inner")).toEqual([1 | 32]);
});

test("an attribute is removed, even if it is missing", async () => {
  const agent = await startAgent();
  const path = join(folder, "file");
  await writeFile(path, "");
  const set = await agent
    .call(Type.fileSetAttribute, u8(1), str(path), str("user.a"), Buffer.from("1"))
    .catch(() => null);
  // A file system without extended attributes has nothing to remove.
  if (set === null) return;
  for (let times = 0; times < 2; times += 1)
    await agent.call(Type.fileRemoveAttribute, u8(1), str(path), str("user.a"));
  expect((await agent.call(Type.fileAttributes, u8(1), str(path))).readUInt32LE()).toBe(0);
  await expect(agent.call(Type.fileRemoveAttribute, u8(1), str(path), str("trusted.a"))).rejects.toMatchObject({
    errno: 22,
  });
});
