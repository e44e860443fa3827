import { readdir, readFile } from "node:fs/promises";
import { join } from "node:path";
import { setTimeout as delay } from "node:timers/promises";
import { CGROUP_MOUNT, removeCgroups } from "./cgroups.ts";

/** Longer than a sandbox's cgroup is empty before its first process. */
const BEING_STARTED_MS = 1_000;

/**
 * Removes the cgroups of servers whose run directory was deleted by hand: nothing else names them any more. Servers with
 * another data directory have theirs in the same place, so that one goes only if it stays empty. A living server makes
 * its own anew when it needs it.
 */
export async function removeForgottenCgroups(parent: string, known: ReadonlySet<string>): Promise<void> {
  const unknown = [...(await serversIn(parent))].filter((name) => !known.has(name)).map((name) => `${parent}/${name}`);
  const empty = await asyncFilter(unknown, async (path) => await isEmpty(path));
  if (empty.length === 0) return;
  const beingStarted = await asyncFilter(empty, async (path) => await hasSandboxes(path));
  if (beingStarted.length > 0) await delay(BEING_STARTED_MS);
  const forgotten = await asyncFilter(empty, async (path) => await isEmpty(path));
  await Promise.all(forgotten.map(async (path) => await removeCgroups(path)));
}

async function serversIn(parent: string): Promise<ReadonlySet<string>> {
  const names = (await placesOf(parent)).map(async (place) => await foldersIn(place));
  return new Set((await Promise.all(names)).flat());
}

/** In no hierarchy a process is in it, or in a cgroup below it. */
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

async function hasSandboxes(path: string): Promise<boolean> {
  const below = (await placesOf(path)).map(async (place) => await foldersIn(place));
  return (await Promise.all(below)).flat().length > 0;
}

/** Where a cgroup may be: version 2 has one hierarchy, version 1 one for each controller. */
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
