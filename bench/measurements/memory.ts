import { readFile } from "node:fs/promises";
import { setTimeout as sleep } from "node:timers/promises";
import type { Lab } from "../lab.ts";
import type { RawContainer } from "../raw/raw-container.ts";
import type { Comparison } from "../result.ts";
import { measurePair } from "../rounds.ts";
import { ClientSession } from "../server/client-session.ts";

/** What a sandbox that does nothing costs of the machine's memory. */
export async function measureMemory(lab: Lab): Promise<Comparison[]> {
  const count = lab.quick ? 5 : 20;
  lab.progress(`Memory of ${count} idle sandboxes`);
  const ours = (): Promise<number> =>
    costOf(
      count,
      () => ClientSession.create(lab.server.url),
      (session) => session.destroy(),
    );
  const raw = (): Promise<number> =>
    costOf(
      count,
      async (): Promise<RawContainer> => {
        const container = await lab.raw.run({ args: ["bash", "-c", "echo up; exec sleep infinity"], asUser: true });
        await container.firstByteMs();
        return container;
      },
      (container) => container.end(),
    );
  const pair = await measurePair(lab.quick ? 1 : 3, ours, raw);
  return [
    {
      id: "memory",
      title: "Memory of an idle sandbox",
      unit: "MiB",
      ours: { what: `MemAvailable, over ${count} sandboxes`, summary: pair.ours },
      raw: { what: `MemAvailable, over ${count} runsc run of sleep`, summary: pair.raw },
    },
  ];
}

async function costOf<T>(count: number, start: () => Promise<T>, end: (started: T) => Promise<void>): Promise<number> {
  const before = await availableMiB();
  const started: T[] = [];
  for (let index = 0; index < count; index++) started.push(await start());
  const after = await availableMiB();
  for (const each of started) await end(each);
  return (before - after) / count;
}

/** Once the machine has come to rest. */
async function availableMiB(): Promise<number> {
  await sleep(1_500);
  const text = await readFile("/proc/meminfo", "utf8");
  return Number(/^MemAvailable:\s+(\d+) kB$/m.exec(text)?.[1] ?? 0) / 1024;
}
