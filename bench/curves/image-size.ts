import { mkdtemp, rm } from "node:fs/promises";
import { join } from "node:path";
import { byEffort, type Lab } from "../lab.ts";
import { CHANGE_HEAP, leaveChangingHeap } from "../measurements/heap.ts";
import { agentOf } from "../raw/agent-of.ts";
import type { Findings } from "../result.ts";
import { timed } from "../rounds.ts";
import { ClientSession } from "../server/client-session.ts";
import { destroySandbox } from "../server/http-call.ts";
import { startServer, type ServerProcess } from "../server/server-process.ts";
import { NOTHING_AHEAD } from "../server/warm-server.ts";
import { diskMegabytes } from "../stores/disk-usage.ts";
import { asFarAsItGoes } from "./as-far-as.ts";
import { Points } from "./points.ts";

const KIND = "random bytes";
/** Larger sizes take minutes, and are measured once. */
const LARGE_MB = 1000;

/** How saving and restoring grow with a sandbox's memory, from 1 MB to 4 GB. */
export async function measureImageSizes(lab: Lab): Promise<Partial<Findings>> {
  const sizes = byEffort(lab, { full: [1, 16, 128, 512, 4096], quick: [1, 16, 128], smoke: [1, 8] });
  const [times, bytes] = [new Points(), new Points()];
  const dataHome = await mkdtemp(join(lab.scratch, "data-"));
  const flags = [`--runsc=${lab.engine.path}`, NOTHING_AHEAD];
  const elsewhere = await startServer({ store: lab.server.store, dataHome, flags }, lab.cleanUp);
  const what = (megabytes: number): string => `Images of ${megabytes} MB`;
  await asFarAsItGoes(lab, sizes, what, async (megabytes) => {
    for (let round = 0; round < roundsOf(lab, megabytes); round++) {
      await ours(lab, elsewhere, megabytes, times, bytes);
      await raw(lab, megabytes, times);
    }
  });
  await elsewhere.stop();
  return {
    curves: [
      {
        id: "image-size-time",
        title: "Saving and restoring by the size of the memory",
        x: "MB of random bytes held",
        y: "ms",
        series: times.series(),
        notes: [
          `Sizes above ${LARGE_MB} MB are measured once. ` +
            "A checkpoint of sandboxer is durable, verified and compressed in its store; `runsc checkpoint` leaves plain files that are not synced. " +
            "A restore is measured to the first answer of the agent inside; programs wait for memory that an engine loads after that, so the table also has the time until 1 % of all pages were changed. Elsewhere means at a server whose caches have none of it. Before the second checkpoint, 1 % of the pages were changed, spread over all. " +
            "The engine writes and reads all of the memory each time, so no curve here can be flat before the engine's is; sandboxer adds hashing, compression, syncing and reading back.",
        ],
      },
      {
        id: "image-size-bytes",
        title: "Bytes that a checkpoint adds to the store",
        x: "MB of random bytes held",
        y: "MB",
        series: bytes.series(),
        notes: [],
      },
    ],
  };
}

async function ours(
  lab: Lab,
  elsewhere: ServerProcess,
  megabytes: number,
  times: Points,
  bytes: Points,
): Promise<void> {
  const { server } = lab;
  const resources = { memory_mb: memoryMbOf(megabytes) };
  const session = await ClientSession.create(server.url, { enable_checkpoint: true, resources });
  const { sandboxId } = session;
  await session.execute("python", leaveChangingHeap(KIND, megabytes));
  const before = await diskMegabytes(server.store);
  times.add("sandboxer: first checkpoint", megabytes, await timed(() => session.checkpoint()));
  const between = await diskMegabytes(server.store);
  const startMs = performance.now();
  const again = await ClientSession.attach(server.url, sandboxId);
  times.add("sandboxer: restore", megabytes, performance.now() - startMs);
  await again.execute("python", CHANGE_HEAP);
  times.add("sandboxer: restore, then change 1 %", megabytes, performance.now() - startMs);
  times.add("sandboxer: second checkpoint", megabytes, await timed(() => again.checkpoint()));
  bytes.add("first checkpoint", megabytes, between - before);
  bytes.add("second checkpoint", megabytes, (await diskMegabytes(server.store)) - between);
  const movedMs = performance.now();
  await ClientSession.attach(elsewhere.url, sandboxId);
  times.add("sandboxer: restore elsewhere", megabytes, performance.now() - movedMs);
  await destroySandbox(elsewhere, sandboxId);
}

async function raw(lab: Lab, megabytes: number, times: Points): Promise<void> {
  const image = join(lab.scratch, "curve-image");
  const program = { ...lab.raw.agentProgram, memoryMb: memoryMbOf(megabytes) };
  const container = await lab.raw.run(program);
  const agent = agentOf(container);
  await agent.start();
  const holder = await agent.exec({ key: "heap", argv: ["python3", "-c", leaveChangingHeap(KIND, megabytes)] });
  await holder.exited;
  await agent.quiesce();
  const command = ["checkpoint", "--compression=none", `--image-path=${image}`, container.id];
  times.add("runsc checkpoint", megabytes, await timed(() => lab.raw.command(command)));
  await container.end();
  const launch = await lab.raw.prepareRestore(program, image);
  const restored = await launch();
  const restoredAgent = agentOf(restored);
  await restoredAgent.restored(1, "sandbox");
  times.add("runsc restore", megabytes, performance.now() - restored.startMs);
  const change = await restoredAgent.exec({ key: "change", argv: ["python3", "-c", CHANGE_HEAP] });
  await change.exited;
  times.add("runsc restore, then change 1 %", megabytes, performance.now() - restored.startMs);
  await restored.end();
  await rm(image, { recursive: true });
}

/** The heap, and room for everything else. */
function memoryMbOf(megabytes: number): number {
  return Math.round(megabytes * 1.25) + 512;
}

function roundsOf(lab: Lab, megabytes: number): number {
  const full = megabytes > LARGE_MB ? 1 : 3;
  return byEffort(lab, { full, quick: 2, smoke: 1 });
}
