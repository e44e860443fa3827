import { readdir, readFile, rmdir } from "node:fs/promises";
import { join } from "node:path";
import { setTimeout as delay } from "node:timers/promises";
import { CGROUP_MOUNT, removeCgroups } from "./cgroups.ts";

/** Longer than a sandbox's cgroup is empty before its first process, on a machine that is not overloaded. */
const BEING_STARTED_MS = 1_000;

/**
 * Removes the cgroups of servers whose run directory was deleted by hand: nothing else references them. Servers with
 * another data directory have theirs in the same place: live ones are `living`, read after the list. A server in
 * another container cannot be detected, so a cgroup is removed only if it stays empty, and only with its known
 * contents: a live server may be creating a sandbox's. It creates its own again when needed.
 */
export async function removeForgottenCgroups(
  parent: string,
  known: ReadonlySet<string>,
  living: () => Promise<ReadonlySet<string>>,
): Promise<void> {
  const unknown = [...(await foldersOf(parent))].filter((name) => !known.has(name));
  if (unknown.length === 0) return;
  const held = await living();
  const dead = unknown.filter((name) => !held.has(name)).map((name) => `${parent}/${name}`);
  const empty = await asyncFilter(dead, async (path) => await isEmpty(path));
  const seen = await Promise.all(empty.map(async (path) => ({ path, sandboxes: await foldersOf(path) })));
  if (seen.some(({ sandboxes }) => sandboxes.size > 0)) await delay(BEING_STARTED_MS);
  const forgotten = await asyncFilter(seen, async ({ path }) => await isEmpty(path));
  await Promise.all(
    forgotten.map(async ({ path, sandboxes }) => {
      for (const sandbox of sandboxes) await removeCgroups(`${path}/${sandbox}`);
      // With new content, it stays.
      for (const place of await placesOf(path)) await rmdir(place).catch(() => {});
    }),
  );
}

/** The names of what is in a cgroup, in any hierarchy. */
async function foldersOf(path: string): Promise<ReadonlySet<string>> {
  const names = (await placesOf(path)).map(async (place) => await foldersIn(place));
  return new Set((await Promise.all(names)).flat());
}

/** No process is in it, or in a cgroup below it, in any hierarchy. */
async function isEmpty(path: string): Promise<boolean> {
  const places = await placesOf(path);
  return (await Promise.all(places.map(isTreeEmpty))).every(Boolean);
}

async function isTreeEmpty(folder: string): Promise<boolean> {
  const processes = await readFile(join(folder, "cgroup.procs"), "utf8").catch(() => "");
  if (processes.trim() !== "") return false;
  const below = (await foldersIn(folder)).map(async (name) => await isTreeEmpty(join(folder, name)));
  return (await Promise.all(below)).every(Boolean);
}

/** The possible paths of a cgroup: version 2 has one hierarchy, version 1 one for each controller. */
async function placesOf(path: string): Promise<string[]> {
  return ["", ...(await foldersIn(CGROUP_MOUNT))].map((hierarchy) => join(CGROUP_MOUNT, hierarchy, path));
}

async function foldersIn(folder: string): Promise<string[]> {
  const entries = await readdir(folder, { withFileTypes: true }).catch(() => []);
  return entries.filter((entry) => entry.isDirectory()).map(({ name }) => name);
}

async function asyncFilter<T>(items: readonly T[], test: (item: T) => Promise<boolean>): Promise<T[]> {
  const kept = await Promise.all(items.map(test));
  return items.filter((_, at) => kept[at]);
}
