import { rm } from "node:fs/promises";
import { join } from "node:path";
import { setTimeout as sleep } from "node:timers/promises";
import type { Lab } from "../lab.ts";
import { agentOf } from "../raw/agent-of.ts";
import type { Comparison } from "../result.ts";
import { measurePair } from "../rounds.ts";
import { callServer, createSandbox, destroySandbox, execIn } from "../server/http-call.ts";
import { settle } from "./checkpoint.ts";
import { leaveHeap, leaveTicker, SILENCES } from "./heap.ts";

/** By the megabytes of the heap. */
const AIMS: Readonly<Record<number, number>> = { 0: 0.9, 100: 0.8, 500: 0.7 };

/** By then the ticker has run again, and noted its silence. */
const NOTING_MS = 200;

/** How long a program inside does not run because of a checkpoint that leaves its sandbox running. */
export async function measureLivePause(lab: Lab): Promise<Comparison[]> {
  const comparisons: Comparison[] = [];
  for (const megabytes of lab.quick ? [0, 100] : [0, 100, 500]) comparisons.push(await measureSize(lab, megabytes));
  return comparisons;
}

async function measureSize(lab: Lab, megabytes: number): Promise<Comparison> {
  lab.progress(`Pause of a program during a checkpoint, ${megabytes} MB of heap`);
  const { server, raw } = lab;
  const programs = [leaveHeap(megabytes), leaveTicker()];

  const sandboxId = await createSandbox(server, { enable_checkpoint: true });
  for (const program of programs) await execIn(server, sandboxId, ["python3", "-c", program]);
  const container = await raw.run(raw.agentProgram);
  const agent = agentOf(container);
  await agent.start();
  for (const [index, program] of programs.entries())
    await (
      await agent.exec({ key: `program ${index}`, argv: ["python3", "-c", program] })
    ).exited;

  const ours = (): Promise<number> =>
    longestSilence(
      () => execIn(server, sandboxId, ["cat", SILENCES]),
      () => callServer(server, "POST", `/v1/sandboxes/${sandboxId}/checkpoint`, { leave_running: true }),
    );
  const image = join(lab.scratch, "live-image");
  const rawSilence = async (): Promise<number> => {
    const silence = await longestSilence(
      async () => (await agent.rootFiles.readInto(SILENCES, 0, Buffer.alloc(65_536))).toString(),
      () => raw.command(["checkpoint", "--leave-running", "--compression=none", `--image-path=${image}`, container.id]),
    );
    await rm(image, { recursive: true });
    return silence;
  };
  // More than for other rows: one preemption of the program counts as a pause.
  const pair = await measurePair(lab.quick ? 4 : 12, ours, rawSilence);
  await Promise.all([destroySandbox(server, sandboxId), container.end()]);
  return {
    id: `live-pause-${megabytes}`,
    title: `Pause in a live checkpoint, ${megabytes} MB heap`,
    unit: "ms",
    ours: {
      what: "longest time that a program inside does not run, checkpoint with leave_running",
      summary: pair.ours,
    },
    raw: { what: "the same during runsc checkpoint --leave-running into a new folder", summary: pair.raw },
    aim: { bound: "at most", ratio: AIMS[megabytes] ?? 1 },
  };
}

/** The longest silence that the ticker noted during some work. */
async function longestSilence(read: () => Promise<string>, work: () => Promise<unknown>): Promise<number> {
  await settle();
  const before = (await read()).length;
  await work();
  await sleep(NOTING_MS);
  const noted = (await read()).slice(before).trim().split("\n").map(Number);
  return Math.max(...noted);
}
