import { setTimeout as sleep } from "node:timers/promises";
import type { Lab } from "../lab.ts";
import { leaveHeap } from "../measurements/heap.ts";
import { timed } from "../rounds.ts";
import { ClientSession } from "../server/client-session.ts";
import type { ServerProcess } from "../server/server-process.ts";
import { handedOut, startWarmServer, type WarmServer } from "../server/warm-server.ts";
import { callServer, createSandbox, destroySandbox, execIn } from "../server/http-call.ts";
import { FILE_SAID, HEAP_MEGABYTES, SAY_FILE, WRITE_FILE, type Peer } from "./peer.ts";

const PATIENCE_MS = 10_000;

export async function openSandboxer(lab: Lab): Promise<Peer> {
  const { server } = lab;
  const box = await createSandbox(server);
  const warm = await startWarmServer(lab);
  const ahead = { asked: 0, got: 0 };
  return {
    name: "sandboxer",
    work: {
      run: {
        what: {
          run: "WebSocket connect, create, `echo hello` in bash, first stdout event; no warm sandboxes",
          get "run-ahead"() {
            return `the same at a server with its usual settings; ${ahead.got} of ${ahead.asked} got a warm sandbox, the others do not count`;
          },
        },
        once: async () => {
          const cold = await run(server);
          await isReady(warm);
          const before = await handedOut(warm);
          const elapsedMs = await run(warm);
          const got = (await handedOut(warm)) > before;
          ahead.asked += 1;
          ahead.got += got ? 1 : 0;
          return { run: cold, ...(got ? { "run-ahead": elapsedMs } : {}) };
        },
      },
      exec: {
        what: { exec: "POST …/exec to its answer, which has the output and the exit code" },
        once: async () => ({ exec: await timed(() => execIn(server, box, ["/bin/true"])) }),
      },
      files: {
        what: {
          commit: "POST …/snapshot with mode filesystem: durable in the store, the sandbox keeps running",
          "from-commit": "POST …/restore of the snapshot, then exec of `stat`",
        },
        once: () => files(lab),
      },
      memory: {
        what: {
          save: "checkpoint action to CHECKPOINTED: durable in the store, files too, the local copy is ended",
          restore: "attach to RUNNING",
        },
        once: () => memory(lab),
      },
    },
  };
}

/** An overloaded server fills no pool. */
async function isReady({ ready }: WarmServer): Promise<void> {
  await Promise.race([ready(), sleep(PATIENCE_MS, undefined, { ref: false })]).catch(() => {});
}

async function run({ url }: Pick<ServerProcess, "url">): Promise<number> {
  const startMs = performance.now();
  const session = await ClientSession.create(url);
  session.start("bash", "echo hello");
  await session.firstOutput;
  const elapsedMs = performance.now() - startMs;
  await session.status("EXECUTION_DONE");
  await session.destroy();
  return elapsedMs;
}

async function files({ server }: Lab): Promise<{ commit: number; "from-commit": number }> {
  const box = await createSandbox(server);
  await execIn(server, box, WRITE_FILE);
  let snapshot = "";
  const commit = await timed(async () => {
    const record = await callServer(server, "POST", `/v1/sandboxes/${box}/snapshot`, { mode: "filesystem" });
    snapshot = String(record["id"]);
  });
  let copy = "";
  const fromCommit = await timed(async () => {
    copy = String((await callServer(server, "POST", `/v1/snapshots/${snapshot}/restore`, {}))["id"]);
    const said = await execIn(server, copy, SAY_FILE);
    if (said.trim() !== FILE_SAID) throw new Error(`The file of the copy has ${said.trim()} bytes.`);
  });
  for (const each of [box, copy]) await destroySandbox(server, each);
  await callServer(server, "DELETE", `/v1/snapshots/${snapshot}`);
  return { commit, "from-commit": fromCommit };
}

async function memory({ server }: Lab): Promise<{ save: number; restore: number }> {
  const session = await ClientSession.create(server.url, { enable_checkpoint: true });
  await session.execute("python", leaveHeap(HEAP_MEGABYTES));
  const save = await timed(() => session.checkpoint());
  const startMs = performance.now();
  const attached = await ClientSession.attach(server.url, session.sandboxId);
  const restore = performance.now() - startMs;
  await attached.destroy();
  return { save, restore };
}
