import { byEffort, type Lab } from "../lab.ts";
import type { Contest, Findings, Unit } from "../result.ts";
import { timed } from "../rounds.ts";
import { haveMemoryAtHand } from "../memory-at-hand.ts";
import { ClientSession } from "../server/client-session.ts";
import { summarize } from "../statistics.ts";
import { diskMegabytes } from "../stores/disk-usage.ts";
import { settle } from "./checkpoint.ts";
import { CHANGE_HEAP, leaveChangingHeap, type HeapKind } from "./heap.ts";

/** A first checkpoint, and a second one after one percent has changed. */
interface Checkpoints {
  readonly bytes: { first: number[]; second: number[] };
  readonly times: { first: number[]; second: number[] };
}

/** The memory that the engine writes to: whatever the machine provides, or available memory both times. */
type Memory = "as it comes" | "at hand";

/** The cost of a second checkpoint after one percent of a process's memory changed. */
export async function measureSavings(lab: Lab): Promise<Partial<Findings>> {
  const megabytes = byEffort(lab, { full: 500, quick: 200, smoke: 20 });
  const contests: Contest[] = [];
  for (const kind of ["random bytes", "Python objects"] as const) {
    const asItComes = await checkpointsOf(lab, kind, megabytes, "as it comes");
    const atHand = await checkpointsOf(lab, kind, megabytes, "at hand");
    contests.push(...contestsOf(kind, megabytes, asItComes, atHand));
  }
  return { contests };
}

async function checkpointsOf(lab: Lab, kind: HeapKind, megabytes: number, memory: Memory): Promise<Checkpoints> {
  lab.progress(`Second checkpoint, ${megabytes} MB of ${kind}, memory ${memory}`);
  const found: Checkpoints = { bytes: { first: [], second: [] }, times: { first: [], second: [] } };
  for (let round = 0; round < byEffort(lab, { full: 3, quick: 1, smoke: 1 }); round++) {
    await checkpointTwice(lab, { kind, megabytes, memory }, found);
  }
  return found;
}

async function checkpointTwice(
  lab: Lab,
  { kind, megabytes, memory }: { readonly kind: HeapKind; readonly megabytes: number; readonly memory: Memory },
  found: Checkpoints,
): Promise<void> {
  const { server } = lab;
  const checkpoint = async (session: ClientSession): Promise<number> => {
    await settle();
    if (memory === "at hand") await haveMemoryAtHand(lab.scratch, 2 * megabytes);
    return await timed(() => session.checkpoint());
  };
  const configuration = { enable_checkpoint: true, resources: { memory_mb: 2 * megabytes + 256 } };
  const session = await ClientSession.create(server.url, configuration);
  await session.execute("python", leaveChangingHeap(kind, megabytes));
  const before = await diskMegabytes(server.store);
  found.times.first.push(await checkpoint(session));
  const between = await diskMegabytes(server.store);
  const again = await ClientSession.attach(server.url, session.sandboxId);
  await again.execute("python", CHANGE_HEAP);
  found.times.second.push(await checkpoint(again));
  const after = await diskMegabytes(server.store);
  found.bytes.first.push(between - before);
  found.bytes.second.push(after - between);
  await (await ClientSession.attach(server.url, session.sandboxId)).destroy();
}

function contestsOf(kind: HeapKind, megabytes: number, asItComes: Checkpoints, atHand: Checkpoints): Contest[] {
  const sides = ({ first, second }: Checkpoints["bytes"], what: string) => [
    {
      name: "second checkpoint",
      what: `${what}, after single places all over the heap were changed`,
      summary: summarize(second),
    },
    { name: "first checkpoint", what, summary: summarize(first) },
  ];
  const contest = (id: string, title: string, unit: Unit, ratio: number, list: Contest["sides"]): Contest => ({
    id: `${id}-${kind}`,
    title: `${title}: ${megabytes} MB of ${kind}, 1 % changed`,
    unit,
    sides: list,
    aim: { bound: "at most", ratio },
  });
  const duration = "checkpoint action to CHECKPOINTED";
  return [
    contest("second-bytes", "Bytes", "MB", 0.03, sides(asItComes.bytes, "what the store grew by")),
    contest("second-time", "Time", "ms", 0.5, sides(asItComes.times, duration)),
    contest("second-time-at-hand", "Time, memory at hand", "ms", 0.5, sides(atHand.times, duration)),
  ];
}
