import { setTimeout as sleep } from "node:timers/promises";
import { byEffort, type Lab } from "../lab.ts";
import { cpuUseOf } from "../process-cpu.ts";
import { treeMemoryMiB } from "../process-memory.ts";
import type { RawContainer } from "../raw/raw-container.ts";
import type { Comparison } from "../result.ts";
import { createSandbox, destroySandbox } from "../server/http-call.ts";
import type { ServerProcess } from "../server/server-process.ts";
import { summarize } from "../statistics.ts";
import { untilAllDoze } from "./until-dozing.ts";

/** What one tick of all of them together would be: less than that cannot be seen. */
const LEAST_MS = 10;

interface Cost {
  readonly memoryMiB: number;
  /** Of a core. */
  readonly cpuPercent: number;
}

/** What a sandbox costs that does nothing: memory, and the processor's time while nobody asks for anything. */
export async function measureIdleCost(lab: Lab, server: ServerProcess): Promise<Comparison[]> {
  const count = byEffort(lab, { full: 20, quick: 20, smoke: 3 });
  const rounds = byEffort(lab, { full: 2, quick: 1, smoke: 1 });
  const watchedMs = byEffort(lab, { full: 15_000, quick: 10_000, smoke: 2_000 });
  lab.progress(`${count} idle sandboxes, for ${watchedMs / 1000} s`);
  const ours: Cost[] = [];
  const raw: Cost[] = [];
  for (let round = 0; round < rounds; round++) {
    ours.push(await costOfOurs(server, count, watchedMs));
    raw.push(await costOfRaw(lab, count, watchedMs));
  }
  const [sandboxes, containers] = [`${count} sandboxes, dozing`, `${count} runsc run of sleep`];
  const seconds = `${watchedMs / 1000} s`;
  return [
    {
      id: "idle-memory",
      title: "Memory of an idle sandbox, dozing",
      unit: "MiB",
      ours: { what: `PSS of server and ${sandboxes}, less the empty server's`, summary: memoryOf(ours) },
      raw: { what: `PSS of ${containers}`, summary: memoryOf(raw) },
      aim: { bound: "at most", ratio: 1.1 },
    },
    {
      id: "idle-cpu",
      title: "Processor of an idle sandbox, of one core",
      unit: "%",
      ours: { what: `all processes of ${sandboxes}, in ${seconds}`, summary: cpuOf(ours) },
      raw: { what: `all processes of ${containers}, in ${seconds}`, summary: cpuOf(raw) },
    },
  ];
}

async function costOfOurs(server: ServerProcess, count: number, watchedMs: number): Promise<Cost> {
  const emptyMiB = await treeMemoryMiB(server.pid);
  const sandboxes: string[] = [];
  for (let index = 0; index < count; index++) sandboxes.push(await createSandbox(server));
  await untilAllDoze(server);
  const cpuPercent = await watch(count, watchedMs, async () => (await cpuUseOf(server.pid)).descendantsMs);
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
