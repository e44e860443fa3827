import { mkdtemp, readFile } from "node:fs/promises";
import { join } from "node:path";
import { setTimeout as sleep } from "node:timers/promises";
import { mapAtOnce } from "../../packages/server/src/support/map-at-once.ts";
import { byEffort, type Lab } from "../lab.ts";
import { cpuUseOf } from "../process-cpu.ts";
import { treeMemoryMiB } from "../process-memory.ts";
import type { Aim, Contest, Findings } from "../result.ts";
import { timed } from "../rounds.ts";
import { callServer, createSandbox, destroySandbox, execIn } from "../server/http-call.ts";
import { startServer, type ServerProcess } from "../server/server-process.ts";
import { NOTHING_AHEAD } from "../server/warm-server.ts";
import { summarize } from "../statistics.ts";
import { measureIdleCost } from "./idle-cost.ts";
import { untilAllDoze } from "./until-dozing.ts";

const CREATES_AT_ONCE = 4;
const WATCHED_MS = 10_000;
const CREATE_AIM: Aim = { bound: "at most", ratio: 2 };
/** Memory that must stay free for the machine. */
const SPARE_MIB = 2048;

/** Response times, one value per repeat. */
interface Answers {
  readonly create: number[];
  readonly exec: number[];
  readonly health: number[];
}

/** The cost of idle sandboxes, and response times of a server that is full of them. */
export async function measureDensity(lab: Lab): Promise<Partial<Findings>> {
  const count = lab.liveCount ?? byEffort(lab, { full: 300, quick: 20, smoke: 3 });
  const dataHome = await mkdtemp(join(lab.scratch, "data-"));
  const store = await mkdtemp(join(lab.scratch, "store-"));
  // No warm pool: a create must take its full time.
  const flags = [`--runsc=${lab.engine.path}`, `--max-sandboxes=${count + 50}`, "--rate-limit=0", NOTHING_AHEAD];
  const server = await startServer({ store, dataHome, flags }, lab.cleanUp);
  const comparisons = await measureIdleCost(lab, server);
  const repeats = byEffort(lab, { full: 15, quick: 7, smoke: 2 });
  const alone = await ask(server, undefined, repeats);
  lab.progress(`${count} live sandboxes`);
  const { sandboxes, notes } = await fill(server, count);
  await untilAllDoze(server);
  const crowd = await ask(server, sandboxes, repeats);
  await untilAllDoze(server);
  notes.push(await quietNote(server, sandboxes.length), await memoryNote(server, sandboxes.length));
  await server.stop();
  return { comparisons, contests: contestsOf(crowd, alone, sandboxes.length), notes };
}

function contestsOf(crowd: Answers, alone: Answers, count: number): Contest[] {
  const contest = (name: keyof Answers, title: string, aim?: Aim): Contest => ({
    id: `density-${name}`,
    title: `${title}, with ${count} idle sandboxes`,
    unit: "ms",
    sides: [
      { name: `${count} live`, what: `HTTP, beside ${count} idle sandboxes`, summary: summarize(crowd[name]) },
      { name: "none live", what: "HTTP, the same server without them", summary: summarize(alone[name]) },
    ],
    ...(aim === undefined ? {} : { aim }),
  });
  return [
    contest("create", "Create", CREATE_AIM),
    contest("exec", "Exec of /bin/true"),
    contest("health", "GET /healthz"),
  ];
}

/** A server without sandboxes creates one for this. */
async function ask(server: ServerProcess, sandboxes: readonly string[] | undefined, repeats: number): Promise<Answers> {
  const answers: Answers = { create: [], exec: [], health: [] };
  const chosen = sandboxes ?? [await createSandbox(server)];
  for (let repeat = 0; repeat < repeats; repeat++) {
    let created = "";
    answers.create.push(await timed(async () => (created = await createSandbox(server))));
    await destroySandbox(server, created);
    const one = chosen[Math.floor(((repeat + 0.5) / repeats) * chosen.length)] ?? "";
    answers.exec.push(await timed(() => execIn(server, one, ["/bin/true"])));
    answers.health.push(await timed(() => callServer(server, "GET", "/healthz")));
  }
  if (sandboxes === undefined) await destroySandbox(server, chosen[0] ?? "");
  return answers;
}

async function fill(server: ServerProcess, count: number): Promise<{ sandboxes: string[]; notes: string[] }> {
  const startMs = performance.now();
  const notes: string[] = [];
  const sandboxes: string[] = [];
  while (sandboxes.length < count) {
    const available = await availableMiB();
    if (available < SPARE_MIB) {
      notes.push(
        `Stopped at ${sandboxes.length} sandboxes of ${count}: ${available.toFixed(0)} MiB of memory are left.`,
      );
      break;
    }
    const batch = Array.from({ length: Math.min(20, count - sandboxes.length) }, (_, index) => index);
    sandboxes.push(...(await mapAtOnce(batch, CREATES_AT_ONCE, () => createSandbox(server))));
  }
  const seconds = ((performance.now() - startMs) / 1000).toFixed(0);
  notes.push(`${sandboxes.length} sandboxes were created in ${seconds} s, ${CREATES_AT_ONCE} at once.`);
  return { sandboxes, notes };
}

async function quietNote(server: ServerProcess, count: number): Promise<string> {
  const before = await cpuUseOf(server.pid);
  await sleep(WATCHED_MS);
  const after = await cpuUseOf(server.pid);
  const percent = (ms: number): string => ((ms / WATCHED_MS) * 100).toFixed(2);
  const theirs = percent(after.descendantsMs - before.descendantsMs);
  const own = percent(after.ownMs - before.ownMs);
  return `Without requests, ${count} idle sandboxes use ${theirs} % of a core, and their server ${own} %.`;
}

async function memoryNote(server: ServerProcess, count: number): Promise<string> {
  const eachMiB = (await treeMemoryMiB(server.pid)) / count;
  return `With the whole server, each of the ${count} sandboxes takes ${eachMiB.toFixed(1)} MiB (PSS).`;
}

async function availableMiB(): Promise<number> {
  const text = await readFile("/proc/meminfo", "utf8");
  return Number(/^MemAvailable:\s+(\d+) kB$/m.exec(text)?.[1] ?? 0) / 1024;
}
