import type { Lab } from "../lab.ts";
import type { Aim, Comparison } from "../result.ts";
import { measurePair } from "../rounds.ts";
import { callServer, createSandbox, destroySandbox, execIn } from "../server/http-call.ts";
import type { ServerProcess } from "../server/server-process.ts";
import { handedOut, withHitRate, type WarmServer } from "../server/warm-server.ts";
import { rawFirstByte, rounds } from "./raw-first-byte.ts";

const HELLO = ["python3", "-u", "-c", "print('hello')"];
/** A slow preparation, which is part of the snapshot. */
const PREPARE =
  "python3 -c 'import asyncio, json, sqlite3, http.client, time; time.sleep(100000)' > /dev/null 2>&1 & sleep 1";
const ATTEMPTS = 20;
const AIM: Aim = { bound: "at most", ratio: 1 };

/** From a snapshot to the output of python in a new sandbox; the state must be loaded. */
export function coldRestore(lab: Lab): Promise<Comparison> {
  return restoreRow(lab, lab.server, {
    id: "restore-first-output",
    title: "Restore a prepared snapshot to output (python)",
    warm: false,
    attempt: (restore) => restore(),
  });
}

/** The same with a preloaded state. */
export function warmRestore(lab: Lab, server: WarmServer): Promise<Comparison> {
  return restoreRow(lab, server, {
    id: "warm-restore-first-output",
    title: "Restore a prepared snapshot to output (python), warm",
    aim: AIM,
    warm: true,
    attempt: async (restore) => {
      for (let attempt = 0; attempt < ATTEMPTS; attempt++) {
        await server.ready();
        const before = await handedOut(server);
        const elapsedMs = await restore();
        if ((await handedOut(server)) > before) return elapsedMs;
      }
      throw new Error("The server loads no state ahead.");
    },
  });
}

interface Row extends Pick<Comparison, "id" | "title" | "aim"> {
  /** Only requests with a preloaded state count, and the row says how many did not. */
  readonly warm: boolean;
  readonly attempt: (restore: () => Promise<number>) => Promise<number>;
}

async function restoreRow(lab: Lab, server: ServerProcess, { attempt, warm, ...names }: Row): Promise<Comparison> {
  lab.progress(names.title);
  const prepared = await createSandbox(server);
  await execIn(server, prepared, ["bash", "-c", PREPARE]);
  const { id: snapshot } = await callServer(server, "POST", `/v1/sandboxes/${prepared}/snapshot`, {});
  await destroySandbox(server, prepared);
  const restore = async (): Promise<number> => {
    const startMs = performance.now();
    const { id } = await callServer(server, "POST", `/v1/snapshots/${String(snapshot)}/restore`, {});
    await execIn(server, String(id), HELLO);
    const elapsedMs = performance.now() - startMs;
    await destroySandbox(server, String(id));
    return elapsedMs;
  };
  const raw = (): Promise<number> => rawFirstByte(lab, { args: HELLO, asUser: true });
  const { result: pair, hits } = await withHitRate(server, () => measurePair(rounds(lab), () => attempt(restore), raw));
  const what = "HTTP restore, then exec of python to its end";
  return {
    ...names,
    unit: "ms",
    ours: { what: warm ? `${what}; ${hits}, the others do not count` : what, summary: pair.ours },
    raw: { what: "runsc run of python to its first byte, with nothing prepared", summary: pair.raw },
  };
}
