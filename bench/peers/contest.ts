import { setTimeout as sleep } from "node:timers/promises";
import { byEffort, type Lab } from "../lab.ts";
import type { Contest, Side, Skipped } from "../result.ts";
import { summarize } from "../statistics.ts";
import { ROW_TITLES, TASKS, type Peer, type RowName, type TaskName } from "./peer.ts";

const LIMIT_MS = 30_000;
/** The judged participant; without it there is nothing to compare. */
const JUDGED = "sandboxer";

type Values = Record<string, number[]>;

/**
 * One task by every participant, in rounds. The first round warms up and does not count; a participant that fails drops
 * out, with its reason.
 */
export async function contest(
  lab: Pick<Lab, "effort" | "progress">,
  peers: readonly Peer[],
  task: TaskName,
  skipped: Skipped[],
): Promise<Contest[]> {
  const rounds = byEffort(lab, ROUNDS[task]);
  const titles = TASKS[task].map((row) => ROW_TITLES[row]).join("; ");
  lab.progress(titles);
  const taking = new Map<Peer, Values>();
  const turn = async (peer: Peer, counts: boolean): Promise<void> => {
    const work = peer.work[task];
    const found = typeof work === "string" ? work : await withinLimit(work.once()).catch(reason);
    if (typeof found === "string") {
      taking.delete(peer);
      skipped.push({ what: `${peer.name}: ${titles}`, why: found });
      return;
    }
    const values = taking.get(peer) ?? {};
    taking.set(peer, values);
    if (counts) for (const [row, value] of Object.entries(found)) (values[row] ??= []).push(value);
  };
  for (const peer of peers) {
    lab.progress(`  ${peer.name}`);
    await turn(peer, false);
  }
  let order = [...taking.keys()];
  for (let round = 0; round < rounds; round++) {
    for (const peer of order) await turn(peer, true);
    order = [...order.slice(1), ...order.slice(0, 1)].filter((peer) => taking.has(peer));
  }
  const sides = [...taking];
  if (!sides.some(([{ name }]) => name === JUDGED)) return [];
  return TASKS[task].flatMap((row): Contest[] => {
    const title = ROW_TITLES[row];
    const found = sides.flatMap(([peer, values]) => sideOf(peer, task, row, values[row]));
    if (found[0]?.name === JUDGED) return [{ id: `peer-${row}`, title, unit: "ms", sides: found }];
    const why = row === "run-ahead" ? "the machine was too busy for warm sandboxes" : "it failed";
    skipped.push({ what: `${JUDGED}: ${title}`, why });
    return [];
  });
}

function sideOf({ name, work }: Peer, task: TaskName, row: RowName, values: readonly number[] | undefined): Side[] {
  const how = work[task];
  if (values === undefined || typeof how === "string") return [];
  const what = how.what[row] ?? how.what.run ?? "";
  return [{ name, what, summary: summarize(values) }];
}

const ROUNDS = {
  run: { full: 9, quick: 3, smoke: 1 },
  exec: { full: 25, quick: 7, smoke: 2 },
  files: { full: 5, quick: 1, smoke: 1 },
  memory: { full: 5, quick: 1, smoke: 1 },
} as const;

/** A hanging participant is left to the clean-up. */
async function withinLimit<T>(work: Promise<T>): Promise<T> {
  work.catch(() => {});
  const limit = sleep(LIMIT_MS, undefined, { ref: false }).then(() => {
    throw new Error(`took longer than ${LIMIT_MS / 1000} s`);
  });
  return Promise.race([work, limit]);
}

/** Without ids and paths, which differ from run to run. */
export function reason(error: unknown): string {
  const text = error instanceof Error ? error.message : String(error);
  return text
    .replaceAll(/\b[0-9a-f]{64}\b/g, "ID")
    .replaceAll(/(?<![\w/])\/[\w.+-]+\/[\w./+-]+/g, (path) => `…/${path.split("/").at(-1) ?? ""}`)
    .slice(0, 300);
}
