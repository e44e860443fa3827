import { mkdtemp, readFile } from "node:fs/promises";
import { join } from "node:path";
import { mapAtOnce } from "../../packages/server/src/support/map-at-once.ts";
import { byEffort, type Lab } from "../lab.ts";
import { treeMemoryMiB } from "../process-memory.ts";
import type { Findings } from "../result.ts";
import { timed } from "../rounds.ts";
import { callServer, createSandbox, destroySandbox, execIn } from "../server/http-call.ts";
import { startServer, type ServerProcess } from "../server/server-process.ts";
import { Points } from "./points.ts";
import { NOTHING_AHEAD } from "../server/warm-server.ts";

const CREATES_AT_ONCE = 4;
/** Memory that must stay free for the machine. */
const SPARE_MIB = 2048;

/** Response times and costs of a server with many live sandboxes. */
export async function measureLive(lab: Lab): Promise<Partial<Findings>> {
  const counts = byEffort(lab, { full: [1, 10, 50, 150, 300, 500], quick: [1, 5, 20], smoke: [1, 3] });
  const dataHome = await mkdtemp(join(lab.scratch, "data-"));
  const store = await mkdtemp(join(lab.scratch, "store-"));
  const flags = [
    `--runsc=${lab.engine.path}`,
    `--max-sandboxes=${2 * Math.max(...counts) + 10}`,
    "--rate-limit=0",
    NOTHING_AHEAD,
  ];
  const server = await startServer({ store, dataHome, flags }, lab.cleanUp);
  const [times, memory] = [new Points(), new Points()];
  const notes: string[] = [];
  const sandboxes: string[] = [];
  const emptyMiB = await treeMemoryMiB(server.pid);
  for (const count of counts) {
    lab.progress(`${count} live sandboxes`);
    const stopped = await fill(server, sandboxes, count);
    if (stopped !== undefined) notes.push(`Stopped at ${sandboxes.length} sandboxes, before ${count}: ${stopped}.`);
    await measureAt(server, sandboxes, times);
    memory.add(
      "each, with its share of the server (PSS)",
      sandboxes.length,
      ((await treeMemoryMiB(server.pid)) - emptyMiB) / sandboxes.length,
    );
    memory.add("the server itself (RSS)", sandboxes.length, await server.residentMiB());
    if (stopped !== undefined) break;
  }
  await server.stop();
  const x = "live sandboxes";
  return {
    curves: [
      {
        id: "live-times",
        title: "A server with many live sandboxes",
        x,
        y: "ms",
        series: times.series(),
        notes: [
          "All are idle, with only an agent inside. Exec runs in a sandbox that has had none for a while.",
          ...notes,
        ],
      },
      { id: "live-memory", title: "Memory of many live sandboxes", x, y: "MiB", series: memory.series(), notes },
    ],
  };
}

/** Returns why it stopped early. */
async function fill(server: ServerProcess, sandboxes: string[], count: number): Promise<string | undefined> {
  while (sandboxes.length < count) {
    const available = await availableMiB();
    if (available < SPARE_MIB) return `only ${available.toFixed(0)} MiB of memory are left`;
    const batch = Array.from({ length: Math.min(40, count - sandboxes.length) }, () => sandboxes.length);
    try {
      sandboxes.push(...(await mapAtOnce(batch, CREATES_AT_ONCE, () => createSandbox(server))));
    } catch (error) {
      return error instanceof Error ? error.message : String(error);
    }
  }
  return undefined;
}

async function measureAt(server: ServerProcess, sandboxes: readonly string[], times: Points): Promise<void> {
  const count = sandboxes.length;
  for (let round = 0; round < 5; round++) {
    let created = "";
    times.add("create", count, await timed(async () => (created = await createSandbox(server))));
    await destroySandbox(server, created);
    const chosen = sandboxes[Math.floor(((round + 0.5) / 5) * count)] ?? "";
    times.add("exec /bin/true", count, await timed(() => execIn(server, chosen, ["/bin/true"])));
    times.add("GET …/{id}", count, await timed(() => callServer(server, "GET", `/v1/sandboxes/${chosen}`)));
    times.add("GET /healthz", count, await timed(() => callServer(server, "GET", "/healthz")));
  }
}

async function availableMiB(): Promise<number> {
  const text = await readFile("/proc/meminfo", "utf8");
  return Number(/^MemAvailable:\s+(\d+) kB$/m.exec(text)?.[1] ?? 0) / 1024;
}
