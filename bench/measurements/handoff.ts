import { mkdtemp } from "node:fs/promises";
import { join } from "node:path";
import type { Lab } from "../lab.ts";
import { moveRaw } from "../raw/raw-move.ts";
import type { Comparison } from "../result.ts";
import { measurePair } from "../rounds.ts";
import { ClientSession } from "../server/client-session.ts";
import { startServer, type ServerProcess } from "../server/server-process.ts";
import { TickWatch, TICK } from "../server/tick-watch.ts";
import { summarize, summarizePhases } from "../statistics.ts";
import { openBenchStores, type BenchStore } from "../stores/bench-store.ts";
import { leaveHeap } from "./heap.ts";
import { NOTHING_AHEAD } from "../server/warm-server.ts";

const CONFIGURATION = { enable_checkpoint: true, enable_sandbox_handoff: true };
const RAW = "runsc checkpoint, one plain copy of the bytes, runsc restore, one after the other";

/** A client attaches at one server to a sandbox that runs and prints at another. */
export async function measureHandoff(lab: Lab): Promise<Comparison[]> {
  const comparisons: Comparison[] = [];
  const stores = await openBenchStores(lab);
  // The GCS emulator is slow for large objects, which says nothing about the real one.
  for (const store of stores.filter(({ name }) => name === "directory" || (!lab.quick && name.startsWith("S3")))) {
    const address = await store.newStore();
    const servers = [await startOne(lab, address), await startOne(lab, address)] as const;
    for (const megabytes of sizesOf(lab, store)) {
      comparisons.push(...(await measureSize(lab, store, servers, megabytes)));
    }
    for (const server of servers) await server.stop();
  }
  return comparisons;
}

async function startOne(lab: Lab, store: string): Promise<ServerProcess> {
  const dataHome = await mkdtemp(join(lab.scratch, "data-"));
  // An emulator may take longer for a large upload than the default handoff timeout.
  const flags = [`--runsc=${lab.engine.path}`, "--handoff-timeout=10m", NOTHING_AHEAD];
  return startServer({ store, dataHome, flags }, lab.cleanUp);
}

async function measureSize(
  lab: Lab,
  store: BenchStore,
  [owner, newcomer]: readonly [ServerProcess, ServerProcess],
  megabytes: number,
): Promise<Comparison[]> {
  lab.progress(`Handoff with ${megabytes} MB of heap, store: ${store.name}`);
  const gaps: number[] = [];
  const phases = { ours: [] as Record<string, number>[], raw: [] as Record<string, number>[] };

  const ours = async (counts: boolean): Promise<number> => {
    const watch = new TickWatch();
    const session = await ClientSession.create(owner.url, CONFIGURATION);
    await session.execute("python", leaveHeap(megabytes));
    session.onOutput = watch.tick;
    session.start("python", TICK);
    await watch.ticks(10);
    const startMs = performance.now();
    const attached = await ClientSession.attach(newcomer.url, session.sandboxId);
    const runningMs = performance.now() - startMs;
    attached.onOutput = watch.tick;
    attached.send({ action: "reconnect" });
    await watch.ticks(10);
    const found = {
      ...(await owner.log.phases("checkpoint", session.sandboxId)),
      ...(await newcomer.log.phases("restore", session.sandboxId)),
    };
    await attached.destroy();
    if (counts) {
      gaps.push(watch.longestGapMs);
      phases.ours.push(found);
    }
    return runningMs;
  };
  const raw = async (counts: boolean): Promise<number> => {
    const times = await moveRaw(lab, megabytes);
    if (counts) phases.raw.push(times);
    return times.checkpoint + times.copy + times.restore;
  };

  const pair = await measurePair(lab.quick ? 2 : 3, ours, raw);
  const common = { unit: "ms", raw: { what: RAW, summary: pair.raw } } as const;
  const subject = `${megabytes} MB heap, ${store.name}`;
  return [
    {
      ...common,
      id: `handoff-${store.name}-${megabytes}`,
      title: `Handoff, ${subject}`,
      ours: { what: "attach at the other server to RUNNING", summary: pair.ours },
      phases: { ours: summarizePhases(phases.ours), raw: summarizePhases(phases.raw) },
    },
    {
      ...common,
      id: `gap-${store.name}-${megabytes}`,
      title: `Longest silence, ${subject}`,
      ours: { what: "between two lines of a program that prints every 20 ms", summary: summarize(gaps) },
    },
  ];
}

/** Bucket emulators are slow for large objects, which says nothing about real ones. */
function sizesOf(lab: Lab, { endpoint }: BenchStore): number[] {
  return lab.quick || endpoint !== undefined ? [0, 100] : [0, 100, 500];
}
