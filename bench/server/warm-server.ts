import { join } from "node:path";
import { setTimeout as sleep } from "node:timers/promises";
import type { Lab } from "../lab.ts";
import { ClientSession } from "./client-session.ts";
import { callServer } from "./http-call.ts";
import { startServer, type ServerProcess } from "./server-process.ts";

const PATIENCE_MS = 60_000;

/** The lab's own server has no warm pool, so that other measurements are not affected by it. */
export const NOTHING_AHEAD = "--warm-pool-max=0";

/** A server with its default warm pool. */
export interface WarmServer extends ServerProcess {
  /** Resolves when one is ready and none is being created. */
  readonly ready: () => Promise<void>;
}

interface Pool {
  readonly ready: number;
  readonly preparing: number;
  readonly handed_out: number;
  readonly missed: number;
}

export async function startWarmServer(lab: Lab): Promise<WarmServer> {
  const places = { store: join(lab.scratch, "warm-store"), dataHome: join(lab.scratch, "warm-data") };
  const server = await startServer({ ...places, flags: [`--runsc=${lab.engine.path}`] }, lab.cleanUp);
  await (await ClientSession.create(server.url)).destroy();
  return { ...server, ready: () => untilReady(server) };
}

/** How many requests got a pooled sandbox. */
export async function handedOut(server: Pick<ServerProcess, "url">): Promise<number> {
  return (await poolOf(server)).handed_out;
}

/** Runs work, and reports how many of its requests got a pooled sandbox. */
export async function withHitRate<T>(
  server: Pick<ServerProcess, "url">,
  work: () => Promise<T>,
): Promise<{ readonly result: T; readonly hits: string }> {
  const before = await poolOf(server);
  const result = await work();
  const after = await poolOf(server);
  const [got, missed] = [after.handed_out - before.handed_out, after.missed - before.missed];
  return { result, hits: `${got} of ${got + missed} requests got a warm sandbox` };
}

async function poolOf(server: Pick<ServerProcess, "url">): Promise<Pool> {
  return (await callServer(server, "GET", "/v1/server"))["warm_pool"] as Pool;
}

async function untilReady(server: Pick<ServerProcess, "url">): Promise<void> {
  const deadlineMs = performance.now() + PATIENCE_MS;
  while (performance.now() < deadlineMs) {
    const { ready, preparing } = await poolOf(server);
    if (ready > 0 && preparing === 0) return;
    await sleep(50);
  }
  throw new Error("The server starts no warm sandbox: the machine is too busy, or has too little memory.");
}
