import { setTimeout as sleep } from "node:timers/promises";
import { byEffort, type Lab } from "../lab.ts";
import { cpuUseOf } from "../process-cpu.ts";
import { treeMemoryMiB } from "../process-memory.ts";
import type { RawContainer } from "../raw/raw-container.ts";
import type { Comparison } from "../result.ts";
import { callServer, createSandbox, destroySandbox, execIn } from "../server/http-call.ts";
import type { ServerProcess } from "../server/server-process.ts";
import { summarize } from "../statistics.ts";
import { untilAllDoze } from "./until-dozing.ts";

/** A program that waits in the background: its sandbox does not doze. */
const LEAVE_WAITING = ["bash", "-c", "setsid sleep infinity > /dev/null 2>&1 < /dev/null &"];
/** One tick of all of them together: less cannot be measured. */
const LEAST_MS = 10;

interface Cost {
  readonly memoryMiB: number;
  /** The share of a core. */
  readonly cpuPercent: number;
}

type Kind = "dozing" | "waiting";

/**
 * The cost of an idle sandbox: memory, and CPU time without requests. With only the agent in it, so that it dozes, and
 * with a waiting program, as raw runsc has.
 */
export async function measureIdleCost(lab: Lab, server: ServerProcess): Promise<Comparison[]> {
  const count = byEffort(lab, { full: 20, quick: 20, smoke: 3 });
  const rounds = byEffort(lab, { full: 2, quick: 1, smoke: 1 });
  const watchedMs = byEffort(lab, { full: 15_000, quick: 10_000, smoke: 2_000 });
  lab.progress(`${count} idle sandboxes, for ${watchedMs / 1000} s`);
  const costs: Record<Kind | "raw", Cost[]> = { dozing: [], waiting: [], raw: [] };
  // Once: after a round the server uses more memory than an empty one.
  const emptyMiB = await treeMemoryMiB(server.pid);
  for (let round = 0; round < rounds; round++) {
    for (const kind of ["dozing", "waiting"] as const) {
      costs[kind].push(await costOfOurs(server, kind, { count, watchedMs, emptyMiB }));
    }
    costs.raw.push(await costOfRaw(lab, count, watchedMs));
  }
  const containers = `${count} runsc run of sleep`;
  const seconds = `${watchedMs / 1000} s`;
  return [
    ...rows("idle", `${count} sandboxes, dozing`, "dozing", costs.dozing),
    ...rows("idle-waiting", `${count} sandboxes with a sleep each, awake`, "with a program that waits", costs.waiting),
  ];

  function rows(id: string, sandboxes: string, which: string, ours: readonly Cost[]): Comparison[] {
    return [
      {
        id: `${id}-memory`,
        title: `Memory of an idle sandbox, ${which}`,
        unit: "MiB",
        ours: { what: `PSS of server and ${sandboxes}, less the empty server's`, summary: memoryOf(ours) },
        raw: { what: `PSS of ${containers}`, summary: memoryOf(costs.raw) },
        aim: { bound: "at most", ratio: 1.1 },
      },
      {
        id: `${id}-cpu`,
        title: `Processor of an idle sandbox, ${which}, of one core`,
        unit: "%",
        ours: { what: `all processes of ${sandboxes}, in ${seconds}`, summary: cpuOf(ours) },
        raw: { what: `all processes of ${containers}, in ${seconds}`, summary: cpuOf(costs.raw) },
      },
    ];
  }
}

interface Conditions {
  readonly count: number;
  readonly watchedMs: number;
  readonly emptyMiB: number;
}

async function costOfOurs(
  server: ServerProcess,
  kind: Kind,
  { count, watchedMs, emptyMiB }: Conditions,
): Promise<Cost> {
  const sandboxes: string[] = [];
  for (let index = 0; index < count; index++) {
    const sandbox = await createSandbox(server);
    if (kind === "waiting") await execIn(server, sandbox, LEAVE_WAITING);
    sandboxes.push(sandbox);
  }
  if (kind === "dozing") await untilAllDoze(server);
  const cpuPercent = await watch(count, watchedMs, async () => (await cpuUseOf(server.pid)).descendantsMs);
  const { dozing } = await callServer(server, "GET", "/v1/server");
  if (kind === "waiting" && dozing !== 0) throw new Error(`${String(dozing)} sandboxes doze although a program waits.`);
  const memoryMiB = ((await treeMemoryMiB(server.pid)) - emptyMiB) / count;
  for (const sandbox of sandboxes) await destroySandbox(server, sandbox);
  return { memoryMiB, cpuPercent };
}

async function costOfRaw({ raw }: Lab, count: number, watchedMs: number): Promise<Cost> {
  const containers: RawContainer[] = [];
  for (let index = 0; index < count; index++) {
    const container = await raw.run({ args: ["bash", "-c", "echo up; exec sleep infinity"], asUser: true });
    await container.firstByteMs();
    containers.push(container);
  }
  const sumOf = async (cost: (pid: number) => Promise<number>): Promise<number> => {
    let total = 0;
    for (const { pid } of containers) total += await cost(pid);
    return total;
  };
  const cpuPercent = await watch(count, watchedMs, () =>
    sumOf(async (pid) => {
      const { ownMs, descendantsMs } = await cpuUseOf(pid);
      return ownMs + descendantsMs;
    }),
  );
  const memoryMiB = (await sumOf(treeMemoryMiB)) / count;
  for (const container of containers) await container.end();
  return { memoryMiB, cpuPercent };
}

async function watch(count: number, watchedMs: number, usedMs: () => Promise<number>): Promise<number> {
  const [beforeMs, startMs] = [await usedMs(), performance.now()];
  await sleep(watchedMs);
  const [afterMs, elapsedMs] = [await usedMs(), performance.now() - startMs];
  return ((Math.max(afterMs - beforeMs, LEAST_MS) / elapsedMs) * 100) / count;
}

const memoryOf = (costs: readonly Cost[]) => summarize(costs.map(({ memoryMiB }) => memoryMiB));
const cpuOf = (costs: readonly Cost[]) => summarize(costs.map(({ cpuPercent }) => cpuPercent));
