import { setTimeout as sleep } from "node:timers/promises";
import { byEffort, type Lab } from "../lab.ts";
import { openDocker } from "../peers/docker-peer.ts";
import { ROW_TITLES, TASKS, type Peer, type RowName, type TaskName } from "../peers/peer.ts";
import { openPodman } from "../peers/podman-peer.ts";
import { preparePodman, whyNoCriu } from "../peers/podman-programs.ts";
import { openRunsc } from "../peers/runsc-peer.ts";
import { openSandboxer } from "../peers/sandboxer-peer.ts";
import { startBenchDocker } from "../peers/start-docker.ts";
import type { Contest, Findings, Side, Skipped } from "../result.ts";
import { summarize } from "../statistics.ts";

const LIMIT_MS = 30_000;

/** The same work by everybody who is here, in the same rounds. */
export async function measurePeers(lab: Lab): Promise<Partial<Findings>> {
  const skipped: Skipped[] = [];
  const peers = await openPeers(lab, skipped);
  const contests: Contest[] = [];
  for (const task of Object.keys(TASKS) as TaskName[]) contests.push(...(await contest(lab, peers, task, skipped)));
  return { contests, skipped };
}

async function openPeers(lab: Lab, skipped: Skipped[]): Promise<Peer[]> {
  const peers: Peer[] = [];
  const add = async (name: string, open: () => Promise<Peer>): Promise<void> => {
    lab.progress(`Preparing ${name}`);
    try {
      peers.push(await open());
    } catch (error) {
      skipped.push({ what: name, why: reason(error) });
    }
  };
  await add("sandboxer", () => openSandboxer(lab));
  await add("raw runsc", () => openRunsc(lab));
  const podman = await preparePodman(lab).catch(reason);
  const criu = typeof podman === "string" ? [] : [podman.criuFolder];
  const docker = await startBenchDocker(lab, criu).catch(reason);
  if (typeof docker === "string") skipped.push({ what: "Docker", why: docker });
  else {
    const explain = async (error: unknown): Promise<Error> => {
      const ofCriu = typeof podman !== "string" && /criu/i.test(String(error)) ? `${await whyNoCriu(podman)}; ` : "";
      return new Error(`${ofCriu}${reason(error)}`, { cause: error });
    };
    await add("Docker (runc)", () => openDocker("Docker (runc)", docker, "runc", explain));
    await add("Docker (runsc)", () => openDocker("Docker (runsc)", docker, docker.runscRuntime, explain));
  }
  if (typeof podman === "string") skipped.push({ what: "podman", why: podman });
  else await add("podman (runc)", () => openPodman(lab, podman));
  return peers;
}

/** The first round warms up and does not count; who fails in it takes no further part, and the reason is kept. */
async function contest(lab: Lab, peers: readonly Peer[], task: TaskName, skipped: Skipped[]): Promise<Contest[]> {
  const rounds = byEffort(lab, ROUNDS[task]);
  const titles = TASKS[task].map((row) => ROW_TITLES[row]).join("; ");
  lab.progress(titles);
  const taking = new Map<Peer, Record<string, number[]>>();
  for (const peer of peers) {
    const work = peer.work[task];
    lab.progress(`  ${peer.name}`);
    const first = typeof work === "string" ? work : await withinLimit(work.once()).then(() => undefined, reason);
    if (first === undefined) taking.set(peer, {});
    else skipped.push({ what: `${peer.name}: ${titles}`, why: first });
  }
  const order = [...taking.keys()];
  for (let round = 0; round < rounds; round++) {
    for (const peer of order) {
      const work = peer.work[task];
      if (typeof work === "string") continue;
      const values = taking.get(peer) ?? {};
      for (const [row, value] of Object.entries(await work.once())) (values[row] ??= []).push(value);
    }
    order.push(...order.splice(0, 1));
  }
  return TASKS[task].flatMap((row): Contest[] => {
    const title = ROW_TITLES[row];
    const sides = [...taking].flatMap(([peer, values]) => sideOf(peer, task, row, values[row]));
    if (sides[0]?.name === peers[0]?.name) return [{ id: `peer-${row}`, title, unit: "ms", sides }];
    const why = row === "run-ahead" ? "the machine had too much to do for any to be started ahead" : "it failed";
    skipped.push({ what: `sandboxer: ${title}`, why });
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

/** What hangs is left to the clean-up. */
async function withinLimit<T>(work: Promise<T>): Promise<T> {
  work.catch(() => {});
  const limit = sleep(LIMIT_MS, undefined, { ref: false }).then(() => {
    throw new Error(`took longer than ${LIMIT_MS / 1000} s`);
  });
  return Promise.race([work, limit]);
}

/** Without ids and paths, which differ from run to run. */
function reason(error: unknown): string {
  const text = error instanceof Error ? error.message : String(error);
  return text
    .replaceAll(/\b[0-9a-f]{64}\b/g, "ID")
    .replaceAll(/(?<![\w/])\/[\w.+-]+\/[\w./+-]+/g, (path) => `…/${path.split("/").at(-1) ?? ""}`)
    .slice(0, 300);
}
