import { readFile } from "node:fs/promises";
import { setTimeout as sleep } from "node:timers/promises";
import type { Lab } from "../lab.ts";
import { treeMemoryMiB } from "../process-memory.ts";
import type { RawContainer } from "../raw/raw-container.ts";
import type { Comparison } from "../result.ts";
import { measurePair } from "../rounds.ts";
import { ClientSession } from "../server/client-session.ts";
import { summarize } from "../statistics.ts";

interface Side<T> {
  start(): Promise<T>;
  /** Of everything that belongs to those that were started. */
  processesMiB(started: readonly T[]): Promise<number>;
  end(started: T): Promise<void>;
}

/** What a sandbox that does nothing costs: by the machine's account, and by that of the processes. */
export async function measureMemory(lab: Lab): Promise<Comparison[]> {
  const count = lab.quick ? 5 : 20;
  lab.progress(`Memory of ${count} idle sandboxes`);
  const processes = { ours: [] as number[], raw: [] as number[] };
  const measure = async <T>(side: Side<T>, costs: number[], counts: boolean): Promise<number> => {
    const before = [await availableMiB(), await side.processesMiB([])] as const;
    const started: T[] = [];
    for (let index = 0; index < count; index++) started.push(await side.start());
    const after = [await availableMiB(), await side.processesMiB(started)] as const;
    for (const each of started) await side.end(each);
    if (counts) costs.push((after[1] - before[1]) / count);
    return (before[0] - after[0]) / count;
  };
  const machine = await measurePair(
    lab.quick ? 1 : 2,
    (counts) => measure(serverSide(lab), processes.ours, counts),
    (counts) => measure(rawSide(lab), processes.raw, counts),
  );
  const [ours, raw] = [`${count} sandboxes`, `${count} runsc run of sleep`];
  return [
    {
      id: "memory",
      title: "Memory of an idle sandbox (processes)",
      unit: "MiB",
      ours: { what: `PSS of server and ${ours}, before and after`, summary: summarize(processes.ours) },
      raw: { what: `PSS of ${raw}`, summary: summarize(processes.raw) },
    },
    {
      id: "memory-machine",
      title: "Memory of an idle sandbox (machine)",
      unit: "MiB",
      ours: { what: `MemAvailable, over ${ours}; whatever else runs disturbs it`, summary: machine.ours },
      raw: { what: `MemAvailable, over ${raw}`, summary: machine.raw },
    },
  ];
}

function serverSide(lab: Lab): Side<ClientSession> {
  return {
    start: () => ClientSession.create(lab.server.url),
    processesMiB: () => treeMemoryMiB(lab.server.pid),
    end: (session) => session.destroy(),
  };
}

function rawSide(lab: Lab): Side<RawContainer> {
  return {
    start: async () => {
      const container = await lab.raw.run({ args: ["bash", "-c", "echo up; exec sleep infinity"], asUser: true });
      await container.firstByteMs();
      return container;
    },
    processesMiB: async (started) => {
      let total = 0;
      for (const { pid } of started) total += await treeMemoryMiB(pid);
      return total;
    },
    end: (container) => container.end(),
  };
}

/** Once the machine has come to rest. */
async function availableMiB(): Promise<number> {
  await sleep(1_500);
  const text = await readFile("/proc/meminfo", "utf8");
  return Number(/^MemAvailable:\s+(\d+) kB$/m.exec(text)?.[1] ?? 0) / 1024;
}
