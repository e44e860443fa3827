import { byEffort, type Lab } from "../lab.ts";
import type { Contest, Findings, Unit } from "../result.ts";
import { timed } from "../rounds.ts";
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

/** What a second checkpoint of a process costs that has changed one percent of its memory since the first. */
export async function measureSavings(lab: Lab): Promise<Partial<Findings>> {
  const megabytes = byEffort(lab, { full: 500, quick: 200, smoke: 20 });
  const contests: Contest[] = [];
  for (const kind of ["random bytes", "Python objects"] as const) {
    lab.progress(`Second checkpoint, ${megabytes} MB of ${kind}`);
    const found: Checkpoints = { bytes: { first: [], second: [] }, times: { first: [], second: [] } };
    for (let round = 0; round < byEffort(lab, { full: 3, quick: 1, smoke: 1 }); round++) {
      await checkpointTwice(lab, kind, megabytes, found);
    }
    contests.push(...contestsOf(kind, megabytes, found));
  }
  return { contests };
}

async function checkpointTwice(lab: Lab, kind: HeapKind, megabytes: number, found: Checkpoints): Promise<void> {
  const { server } = lab;
  const configuration = { enable_checkpoint: true, resources: { memory_mb: 2 * megabytes + 256 } };
  const session = await ClientSession.create(server.url, configuration);
  await session.execute("python", leaveChangingHeap(kind, megabytes));
  const before = await diskMegabytes(server.store);
  await settle();
  found.times.first.push(await timed(() => session.checkpoint()));
  const between = await diskMegabytes(server.store);
  const again = await ClientSession.attach(server.url, session.sandboxId);
  await again.execute("python", CHANGE_HEAP);
  await settle();
  found.times.second.push(await timed(() => again.checkpoint()));
  const after = await diskMegabytes(server.store);
  found.bytes.first.push(between - before);
  found.bytes.second.push(after - between);
  await (await ClientSession.attach(server.url, session.sandboxId)).destroy();
}

function contestsOf(kind: HeapKind, megabytes: number, { bytes, times }: Checkpoints): Contest[] {
  const subject = `${megabytes} MB of ${kind}, 1 % changed`;
  const sides = (values: Checkpoints["bytes"], what: string) => [
    {
      name: "second checkpoint",
      what: `${what}, after single places all over the heap were changed`,
      summary: summarize(values.second),
    },
    { name: "first checkpoint", what, summary: summarize(values.first) },
  ];
  const contest = (id: string, title: string, unit: Unit, ratio: number, list: Contest["sides"]): Contest => ({
    id: `${id}-${kind}`,
    title: `${title}: ${subject}`,
    unit,
    sides: list,
    aim: { bound: "at most", ratio },
  });
  return [
    contest("second-bytes", "Bytes", "MB", 0.03, sides(bytes, "what the store grew by")),
    contest("second-time", "Time", "ms", 0.5, sides(times, "checkpoint action to CHECKPOINTED")),
  ];
}
