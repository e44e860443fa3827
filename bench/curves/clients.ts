import { mkdtemp } from "node:fs/promises";
import { join } from "node:path";
import { byEffort, type Lab } from "../lab.ts";
import type { LoadRequest } from "../load/client-load.ts";
import { runLoad } from "../load/run-load.ts";
import type { Findings } from "../result.ts";
import { createSandbox } from "../server/http-call.ts";
import { startServer, type ServerProcess } from "../server/server-process.ts";
import { asFarAsItGoes } from "./as-far-as.ts";
import { Points } from "./points.ts";
import { NOTHING_AHEAD } from "../server/warm-server.ts";

/** The requests of the clients, and their server. */
interface Kind {
  readonly name: string;
  readonly kind: LoadRequest["kind"];
  readonly flags: readonly string[];
  readonly path: (server: ServerProcess) => Promise<string>;
}

/** How a server answers many clients. Each client asks again as soon as it has its answer. */
export async function measureClients(lab: Lab): Promise<Partial<Findings>> {
  const counts = byEffort(lab, { full: [1, 10, 100, 500, 1000, 2000], quick: [1, 10, 100], smoke: [1, 10] });
  const kinds: readonly Kind[] = [
    {
      name: "HTTP stats (gVisor)",
      kind: "http",
      flags: [`--runsc=${lab.engine.path}`, NOTHING_AHEAD],
      path: async (server) => `/v1/sandboxes/${await createSandbox(server)}/stats`,
    },
    { name: "WebSocket exec (fake backend)", kind: "websocket", flags: ["--backend=fake"], path: async () => "/" },
  ];
  const [times, rates, memory] = [new Points(), new Points(), new Points()];
  const notes: string[] = [];
  for (const kind of kinds) notes.push(...(await measureKind(lab, kind, counts, { times, rates, memory })));
  const x = "clients at once";
  const how =
    "All clients are in one other process on the same cores. Each sends its next request as soon as it has its answer, so with many clients the time is their number divided by the rate. On WebSocket each has its own sandbox.";
  return {
    curves: [
      {
        id: "clients-times",
        title: "Response time with many clients",
        x,
        y: "ms",
        series: times.series(),
        notes: [how, ...notes],
      },
      {
        id: "clients-rate",
        title: "Responses per second with many clients",
        x,
        y: "/s",
        series: rates.series(),
        notes: [],
      },
      {
        id: "clients-memory",
        title: "Memory of the server with many clients (RSS)",
        x,
        y: "MiB",
        series: memory.series(),
        notes: [],
      },
    ],
  };
}

async function measureKind(
  lab: Lab,
  { name, kind, flags, path }: Kind,
  counts: readonly number[],
  { times, rates, memory }: Readonly<Record<"times" | "rates" | "memory", Points>>,
): Promise<string[]> {
  const errors: string[] = [];
  const dataHome = await mkdtemp(join(lab.scratch, "data-"));
  const store = await mkdtemp(join(lab.scratch, "store-"));
  const most = 2 * Math.max(...counts) + 100;
  const limits = [`--max-clients=${most}`, `--max-sandboxes=${most}`, "--rate-limit=0"];
  const server = await startServer({ store, dataHome, flags: [...flags, ...limits] }, lab.cleanUp);
  const asked = await path(server);
  let failures = 0;
  const what = (clients: number): string => `${name}: ${clients} clients`;
  await asFarAsItGoes(lab, counts, what, async (clients) => {
    const order = {
      kind,
      url: server.url,
      path: asked,
      clients,
      windows: 3,
      windowMs: byEffort(lab, { full: 1500, quick: 1000, smoke: 300 }),
    };
    const { p50, p99, perSecond, errors: failed, error } = await runLoad(order);
    times.add(`${name}, p50`, clients, ...p50);
    times.add(`${name}, p99`, clients, ...p99);
    rates.add(name, clients, ...perSecond);
    memory.add(name, clients, await server.residentMiB());
    failures += failed;
    if (failed > 0) errors.push(`${name}: ${failed} errors with ${clients} clients: ${error}`);
  });
  await server.stop();
  return failures === 0 ? [`${name}: no errors with any number of clients.`] : errors;
}
