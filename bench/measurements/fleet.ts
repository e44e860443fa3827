import { measureFleet, type FleetFigures, type FleetOptions } from "../../packages/server/test/lease/fleet.ts";
import { byEffort, type Lab } from "../lab.ts";
import type { Findings, RequestCount } from "../result.ts";

const MONTH_SECONDS = 30 * 24 * 3_600;
const HELD_EACH = 100;
/** The numbers of servers, and how long they are idle. */
const SIZES = [
  [10, 120_000],
  [100, 30_000],
  [1_000, 15_000],
] as const;

/** The cost of idle servers, on the servers' own code and a store in memory that counts. */
export async function countFleet(lab: Pick<Lab, "prices" | "effort" | "progress">) {
  const { prices, progress } = lab;
  const requests: RequestCount[] = [];
  const measure = async (options: FleetOptions): Promise<FleetFigures> => {
    const { servers, heldEach } = options;
    const held = `${heldEach.toLocaleString("en")} sandboxes`;
    const operation = servers === 1 ? `1 server, ${held}` : `${servers.toLocaleString("en")} servers, ${held} each`;
    progress(operation);
    const figures = await measureFleet(options);
    const { get, put, list } = figures.perSecond;
    requests.push({
      operation,
      store: "requests per second",
      byKind: { GET: round(get), PUT: round(put), LIST: round(list) },
    });
    const dollars = ((get * prices.get + put * prices.put + list * prices.list) * MONTH_SECONDS) / 1000;
    requests.push({ operation, store: "per month", byKind: { dollars: Math.round(dollars) } });
    return figures;
  };
  for (const [servers, idleMs] of SIZES.slice(0, byEffort(lab, { full: 3, quick: 2, smoke: 1 })))
    await measure({ servers, heldEach: HELD_EACH, idleMs });
  const manyHeld = byEffort(lab, { full: 10_000, quick: 10_000, smoke: 100 });
  const { cpuShare, mostInFlight } = await measure({
    servers: 1,
    heldEach: manyHeld,
    idleMs: 120_000,
  });
  const notes = [
    `Prices for 1,000 requests: GET ${prices.get} $, PUT ${prices.put} $, LIST ${prices.list} $ (\`--prices\`).`,
    `One server with ${manyHeld.toLocaleString("en")} sandboxes: ${(cpuShare * 100).toFixed(2)} % of a core without the client of a bucket, at most ${mostInFlight} requests at once.`,
  ];
  return { requests, notes } satisfies Partial<Findings>;
}

function round(rate: number): number {
  return rate < 10 ? Math.round(rate * 10) / 10 : Math.round(rate);
}
