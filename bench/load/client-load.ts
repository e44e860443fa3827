/** A process with many clients: `node client-load.ts '{"kind":…}'` prints one JSON line, {@link LoadResult}. */
import { Agent, request } from "node:http";
import { setTimeout as sleep } from "node:timers/promises";
import { ClientSession } from "../server/client-session.ts";
import { quantile } from "../statistics.ts";

export interface LoadRequest {
  readonly kind: "http" | "websocket";
  /** `ws://127.0.0.1:PORT` */
  readonly url: string;
  /** The path of a GET. */
  readonly path: string;
  readonly clients: number;
  readonly windows: number;
  readonly windowMs: number;
}

/** The results of each window of time. */
export interface LoadResult {
  readonly p50: number[];
  readonly p99: number[];
  readonly perSecond: number[];
  readonly errors: number;
  readonly error: string;
}

type Client = () => Promise<unknown>;

async function load(order: LoadRequest): Promise<LoadResult> {
  const result = { p50: [] as number[], p99: [] as number[], perSecond: [] as number[], errors: 0, error: "" };
  const clients = await openClients(order);
  let latencies: number[] = [];
  const ending = new AbortController();
  const loops = clients.map(async (client) => {
    while (!ending.signal.aborted) {
      const startMs = performance.now();
      try {
        await client();
        latencies.push(performance.now() - startMs);
      } catch (error) {
        result.errors += 1;
        result.error = String(error);
        await sleep(100);
      }
    }
  });
  await sleep(order.windowMs / 2);
  for (let window = 0; window < order.windows; window++) {
    latencies = [];
    const startMs = performance.now();
    await sleep(order.windowMs);
    const sorted = latencies.toSorted((left, right) => left - right);
    result.p50.push(quantile(sorted, 0.5));
    result.p99.push(quantile(sorted, 0.99));
    result.perSecond.push((sorted.length * 1000) / (performance.now() - startMs));
  }
  ending.abort();
  await Promise.race([Promise.all(loops), sleep(5_000)]);
  return result;
}

/** A few at a time: a server's accept queue is short. */
async function openClients({ kind, url, path, clients }: LoadRequest): Promise<Client[]> {
  if (kind === "http") {
    const agent = new Agent({ keepAlive: true, maxSockets: clients });
    const target = new URL(path, url.replace(/^ws/, "http"));
    return Array.from({ length: clients }, () => () => get(agent, target));
  }
  const opened: Client[] = [];
  while (opened.length < clients) {
    const batch = Array.from({ length: Math.min(50, clients - opened.length) }, () => ClientSession.create(url));
    for (const session of await Promise.all(batch)) opened.push(() => session.execute("bash", "echo hello"));
  }
  return opened;
}

function get(agent: Agent, target: URL): Promise<void> {
  return new Promise((resolve, reject) => {
    const asked = request(target, { agent }, (answer) => {
      answer.resume();
      answer.once("end", () => {
        if (answer.statusCode === 200) resolve();
        else reject(new Error(`status ${answer.statusCode}`));
      });
    });
    asked.once("error", reject);
    asked.end();
  });
}

const [order] = process.argv.slice(2);
if (order !== undefined) {
  process.stdout.write(`${JSON.stringify(await load(JSON.parse(order) as LoadRequest))}\n`, () => process.exit(0));
}
