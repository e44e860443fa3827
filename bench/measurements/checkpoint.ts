import { rm } from "node:fs/promises";
import { execFile } from "node:child_process";
import { join } from "node:path";
import { promisify } from "node:util";
import type { Lab } from "../lab.ts";
import { agentOf } from "../raw/agent-of.ts";
import { copyAndHash } from "../raw/copy-and-hash.ts";
import type { Aim, Comparison } from "../result.ts";
import { measurePair, timed, type Pair } from "../rounds.ts";
import { ClientSession } from "../server/client-session.ts";
import { summarize, summarizePhases } from "../statistics.ts";
import { leaveHeap } from "./heap.ts";

const AIM: Aim = { bound: "at most", ratio: 1.15 };
type Phases = Record<string, number>;

interface Both<T> {
  readonly ours: T[];
  readonly raw: T[];
}

/** Saving and restoring a sandbox whose background process holds that much memory. */
export async function measureCheckpoint(lab: Lab): Promise<Comparison[]> {
  const comparisons: Comparison[] = [];
  for (const megabytes of lab.quick ? [0, 100] : [0, 100, 500])
    comparisons.push(...(await measureSize(lab, megabytes)));
  return comparisons;
}

async function measureSize(lab: Lab, megabytes: number): Promise<Comparison[]> {
  lab.progress(`Checkpoint and restore with ${megabytes} MB of heap`);
  const restores: Both<number> = { ours: [], raw: [] };
  const savePhases: Both<Phases> = { ours: [], raw: [] };
  const restorePhases: Both<Phases> = { ours: [], raw: [] };

  const ours = async (counts: boolean): Promise<number> => {
    const { server } = lab;
    const session = await ClientSession.create(server.url, { enable_checkpoint: true });
    await session.execute("python", leaveHeap(megabytes));
    await settle();
    const saveMs = await timed(() => session.checkpoint());
    await settle();
    const startMs = performance.now();
    const attached = await ClientSession.attach(server.url, session.sandboxId);
    const restoreMs = performance.now() - startMs;
    const phases = {
      save: await server.log.phases("checkpoint", session.sandboxId),
      restore: await server.log.phases("restore", session.sandboxId),
    };
    await attached.destroy();
    if (counts) {
      restores.ours.push(restoreMs);
      savePhases.ours.push(phases.save);
      restorePhases.ours.push(phases.restore);
    }
    return saveMs;
  };

  const raw = async (counts: boolean): Promise<number> => {
    const [image, store, work] = ["image", "raw-store", "work"].map((name) => join(lab.scratch, name)) as [
      string,
      string,
      string,
    ];
    const container = await lab.raw.run(lab.raw.agentProgram);
    const agent = agentOf(container);
    await agent.start();
    await (
      await agent.exec({ key: "heap", argv: ["python3", "-c", leaveHeap(megabytes)] })
    ).exited;
    await agent.quiesce();
    await settle();
    const checkpoint = await timed(() =>
      lab.raw.command(["checkpoint", "--compression=none", `--image-path=${image}`, container.id]),
    );
    const stored = await copyAndHash(image, store, { sync: true });
    await container.end();
    await rm(image, { recursive: true });
    await settle();

    const loaded = await copyAndHash(store, work, { sync: false });
    const launch = await lab.raw.prepareRestore(lab.raw.agentProgram, work);
    const restored = await launch();
    await agentOf(restored).restored(1, "sandbox");
    const restore = performance.now() - restored.startMs;
    await restored.end();
    await Promise.all([store, work].map((folder) => rm(folder, { recursive: true })));
    if (counts) {
      restores.raw.push(loaded.copy + loaded.hash + restore);
      savePhases.raw.push({ checkpoint, ...stored });
      restorePhases.raw.push({ copy: loaded.copy, hash: loaded.hash, restore });
    }
    return checkpoint + stored.copy + stored.hash + stored.sync;
  };

  const saved = await measurePair(rounds(lab, megabytes), ours, raw);
  const restored: Pair = { ours: summarize(restores.ours), raw: summarize(restores.raw) };
  return [
    comparison("checkpoint", megabytes, saved, savePhases, [
      "checkpoint action to CHECKPOINTED",
      "runsc checkpoint, copy, SHA-256, fsync, one after the other",
    ]),
    comparison("restore", megabytes, restored, restorePhases, [
      "attach to RUNNING",
      "copy, SHA-256, runsc restore, first answer inside",
    ]),
  ];
}

function comparison(
  name: "checkpoint" | "restore",
  megabytes: number,
  pair: Pair,
  phases: Both<Phases>,
  what: readonly [string, string],
): Comparison {
  return {
    id: `${name}-${megabytes}`,
    title: `${name === "checkpoint" ? "Checkpoint" : "Restore"}, ${megabytes} MB heap`,
    unit: "ms",
    ours: { what: what[0], summary: pair.ours },
    raw: { what: what[1], summary: pair.raw },
    aim: AIM,
    phases: { ours: summarizePhases(phases.ours), raw: summarizePhases(phases.raw) },
  };
}

/** Flushes other writes first, so that an fsync waits for its own bytes only. */
export async function settle(): Promise<void> {
  await promisify(execFile)("sync");
}

function rounds(lab: Lab, megabytes: number): number {
  if (lab.quick) return 2;
  return megabytes >= 500 ? 4 : 6;
}
