import { randomUUID } from "node:crypto";
import { mkdtemp } from "node:fs/promises";
import { join } from "node:path";
import { setTimeout as sleep } from "node:timers/promises";
import type { Lab } from "../lab.ts";
import type { RequestCount } from "../result.ts";
import { ClientSession } from "../server/client-session.ts";
import { startServer, type ServerProcess } from "../server/server-process.ts";
import { openBenchStores, type BenchStore } from "../stores/bench-store.ts";
import { traceDirectory } from "../stores/directory-trace.ts";
import { traceHttp } from "../stores/http-trace.ts";
import { countByKind, type StoreTrace, withoutHousekeeping } from "../stores/trace.ts";

const CONFIGURATION = { enable_checkpoint: true, enable_sandbox_handoff: true };
const QUIET_MS = 700;
const MINUTE_MS = 60_000;

interface TracedServer {
  readonly server: ServerProcess;
  readonly trace: StoreTrace;
}

/** The store requests of each operation. The fake backend makes no difference to a store. */
export async function countRequests(lab: Lab): Promise<RequestCount[]> {
  const counts = (await openBenchStores(lab)).map((store) => countOn(lab, store));
  return (await Promise.all(counts)).flat();
}

async function countOn(lab: Lab, store: BenchStore): Promise<RequestCount[]> {
  lab.progress(`Requests of each operation, store: ${store.name}`);
  const servers = await startPair(lab, store);
  const [{ server: first, trace }, { server: second }] = servers;
  const counts: RequestCount[] = [];
  const add = (operation: string, byKind: Record<string, number>): void =>
    void counts.push({ operation, store: store.name, byKind });
  add("Start of a server", countByKind(trace.requests()));

  const during = async <T>(operation: string, work: () => Promise<T>): Promise<T> => {
    const before = (await quiet(servers)).map((requests) => requests.length);
    const result = await work();
    const after = await quiet(servers);
    add(operation, countByKind(after.flatMap((requests, index) => requests.slice(before[index]))));
    return result;
  };
  const session = await during("Create", () => ClientSession.create(first.url, CONFIGURATION));
  await during("Checkpoint", () => session.checkpoint());
  const { sandboxId } = session;
  await during("Attach from the store", () => ClientSession.attach(second.url, sandboxId));
  const back = await during("Handoff", () => ClientSession.attach(first.url, sandboxId));
  await during("Filesystem snapshot", async () => {
    back.send({ action: "snapshot_filesystem", name: `bench-${randomUUID()}` });
    await back.status("FILESYSTEM_SNAPSHOT_CREATED");
  });
  await during("Destroy", () => back.destroy());
  add("One minute of a server that has nothing to do, beside another one", await countIdle(lab, trace));
  for (const { server } of servers) await server.stop();
  return counts;
}

async function startPair(lab: Lab, store: BenchStore): Promise<readonly [TracedServer, TracedServer]> {
  const address = await store.newStore();
  const start = async (): Promise<TracedServer> => {
    const dataHome = await mkdtemp(join(lab.scratch, "data-"));
    const options = { store: address, dataHome, flags: ["--backend=fake"] };
    if (store.endpoint === undefined) {
      const trace = traceDirectory(join(dataHome, "trace"));
      return {
        trace,
        server: await startServer({ ...options, nodeFlags: trace.nodeFlags, env: trace.env }, lab.cleanUp),
      };
    }
    const trace = await traceHttp(store.endpoint, lab.cleanUp);
    const through = address.replace(store.endpoint, trace.endpoint);
    return { trace, server: await startServer({ ...options, store: through }, lab.cleanUp) };
  };
  return [await start(), await start()];
}

/** The requests of each server on behalf of a caller, once they are done. */
async function quiet(servers: readonly TracedServer[]) {
  const look = () => servers.map(({ trace }) => withoutHousekeeping(trace.requests()));
  for (let seen = -1; ;) {
    const now = look();
    const count = now.reduce((sum, requests) => sum + requests.length, 0);
    if (count === seen) return now;
    seen = count;
    await sleep(QUIET_MS);
  }
}

async function countIdle(lab: Lab, trace: StoreTrace): Promise<Record<string, number>> {
  const lengthMs = lab.quick ? MINUTE_MS / 6 : MINUTE_MS / 2;
  const from = trace.requests().length;
  await sleep(lengthMs);
  const counts = countByKind(trace.requests().slice(from));
  return Object.fromEntries(
    Object.entries(counts).map(([kind, count]) => [kind, Math.round((count * MINUTE_MS) / lengthMs)]),
  );
}
