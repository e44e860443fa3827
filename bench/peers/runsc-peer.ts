import { rm } from "node:fs/promises";
import { join } from "node:path";
import type { Lab } from "../lab.ts";
import { leaveHeap } from "../measurements/heap.ts";
import { agentOf } from "../raw/agent-of.ts";
import { timed } from "../rounds.ts";
import { HEAP_MEGABYTES, SAY_HELLO, WRITE_FILE, type Peer } from "./peer.ts";

export async function openRunsc(lab: Lab): Promise<Peer> {
  const { raw } = lab;
  const box = await raw.run(raw.agentProgram);
  await agentOf(box).start();
  return {
    name: "raw runsc",
    work: {
      run: {
        what: { run: "runsc run of bash to its first byte" },
        once: async () => {
          const container = await raw.run({ args: SAY_HELLO, asUser: true });
          const elapsedMs = await container.firstByteMs();
          await container.end();
          return { run: elapsedMs, "run-ahead": elapsedMs };
        },
      },
      exec: {
        what: { exec: "runsc exec ID /bin/true" },
        once: async () => ({ exec: await timed(() => raw.command(["exec", "--user=1000:1000", box.id, "/bin/true"])) }),
      },
      files: { what: { commit: "runsc tar rootfs-upper: a tar file, not synced" }, once: () => files(lab) },
      memory: {
        what: {
          save: "runsc checkpoint: files in a folder, no digest, not synced",
          restore: "runsc restore to the first answer inside",
        },
        once: () => memory(lab),
      },
    },
  };
}

async function files({ raw, scratch }: Lab): Promise<{ commit: number }> {
  const container = await raw.run(raw.agentProgram);
  const agent = agentOf(container);
  await agent.start();
  await (
    await agent.exec({ key: "files", argv: [...WRITE_FILE] })
  ).exited;
  const archive = join(scratch, "upper.tar");
  try {
    return { commit: await timed(() => raw.command(["tar", "rootfs-upper", `--file=${archive}`, container.id])) };
  } catch (error) {
    if (!String(error).includes("Usage:")) throw error;
    throw new Error("This version of runsc has no `tar rootfs-upper`.", { cause: error });
  } finally {
    await container.end();
    await rm(archive, { force: true });
  }
}

async function memory({ raw, scratch }: Lab): Promise<{ save: number; restore: number }> {
  const image = join(scratch, "peer-image");
  const container = await raw.run(raw.agentProgram);
  const agent = agentOf(container);
  await agent.start();
  await (
    await agent.exec({ key: "heap", argv: ["python3", "-c", leaveHeap(HEAP_MEGABYTES)] })
  ).exited;
  await agent.quiesce();
  const save = await timed(() =>
    raw.command(["checkpoint", "--compression=none", `--image-path=${image}`, container.id]),
  );
  await container.end();
  const launch = await raw.prepareRestore(raw.agentProgram, image);
  const restored = await launch();
  await agentOf(restored).restored(1, "sandbox");
  const restore = performance.now() - restored.startMs;
  await restored.end();
  await rm(image, { recursive: true });
  return { save, restore };
}
