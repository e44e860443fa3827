import { rm } from "node:fs/promises";
import { join } from "node:path";
import type { Lab } from "../lab.ts";
import { leaveHeap } from "../measurements/heap.ts";
import { timed } from "../rounds.ts";
import { agentOf } from "./agent-of.ts";
import { copyAndHash } from "./copy-and-hash.ts";

export interface MoveTimes extends Record<string, number> {
  checkpoint: number;
  copy: number;
  restore: number;
}

/** A sandbox from one place to another without a server: runsc checkpoint, one plain copy of the bytes, runsc restore. */
export async function moveRaw(lab: Lab, megabytes: number): Promise<MoveTimes> {
  const [image, copied] = [join(lab.scratch, "image"), join(lab.scratch, "copied")];
  const container = await lab.raw.run(lab.raw.agentProgram);
  const agent = agentOf(container);
  await agent.start();
  const holder = await agent.exec({ key: "heap", argv: ["python3", "-c", leaveHeap(megabytes)] });
  await holder.exited;
  await agent.quiesce();
  const checkpoint = await timed(() =>
    lab.raw.command(["checkpoint", "--compression=none", `--image-path=${image}`, container.id]),
  );
  await container.end();
  const { copy } = await copyAndHash(image, copied, { sync: false });
  const launch = await lab.raw.prepareRestore(lab.raw.agentProgram, copied);
  const restored = await launch();
  await agentOf(restored).restored(1, "sandbox");
  const restore = performance.now() - restored.startMs;
  await restored.end();
  for (const folder of [image, copied]) await rm(folder, { recursive: true });
  return { checkpoint, copy, restore };
}
