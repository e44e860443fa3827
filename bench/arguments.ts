import { parseArgs } from "node:util";
import { basename, join, resolve } from "node:path";
import { fileURLToPath } from "node:url";

/** The effort: full measurements, a quick first look of some minutes, or a smoke test. */
export type Effort = "full" | "quick" | "smoke";

/** Dollars for 1,000 requests to a bucket. */
export interface Prices {
  readonly get: number;
  readonly put: number;
  readonly list: number;
}

export interface BenchArguments {
  readonly runscPath: string | undefined;
  readonly effort: Effort;
  /** Absent: depends on the effort. */
  readonly liveCount: number | undefined;
  readonly outDirectory: string;
  readonly writeDocs: boolean;
  /** The prices of a bucket's requests. */
  readonly prices: Prices;
  /** Names of groups to measure; empty: all. */
  readonly only: readonly string[];
}

/** As S3 charges in its first region. */
const DEFAULT_PRICES = "get=0.0004,put=0.005,list=0.005";

export const BENCH_DIRECTORY: string = fileURLToPath(new URL(".", import.meta.url));
export const REPOSITORY: string = fileURLToPath(new URL("..", import.meta.url));

export function usage(groups: readonly string[]): string {
  return `npm run bench [-- OPTIONS]
  --runsc PATH   engine to measure (default: the one that the server finds)
  --quick        fewer repeats and shorter curves; takes some minutes, not for publication
  --smoke        as little as possible of everything: checks only that it works
  --live N       live sandboxes in the group density (default 300, quick 20)
  --prices P     dollars for 1,000 requests in the group fleet (default ${DEFAULT_PRICES})
  --only NAMES   comma-separated groups: ${groups.join(", ")}
  --out DIR      folder for results (default bench/out)
  --write-docs   also update docs/benchmarks; groups that were not measured are kept there
`;
}

/** Throws a message for the user. */
export function parseArguments(argv: readonly string[], groups: readonly string[]): BenchArguments {
  const { values } = parseArgs({
    args: [...argv],
    options: {
      runsc: { type: "string" },
      quick: { type: "boolean", default: false },
      smoke: { type: "boolean", default: false },
      live: { type: "string" },
      prices: { type: "string", default: DEFAULT_PRICES },
      only: { type: "string", default: "" },
      out: { type: "string", default: join(BENCH_DIRECTORY, "out") },
      "write-docs": { type: "boolean", default: false },
    },
  });
  const only = values.only.split(",").filter((name) => name !== "");
  const unknown = only.find((name) => !groups.includes(name));
  if (unknown !== undefined) throw new Error(`There is no group ${unknown}. There are: ${groups.join(", ")}.`);
  if (values.live !== undefined && !/^[1-9][0-9]{0,3}$/.test(values.live))
    throw new Error("--live takes a number from 1 to 9999.");
  return {
    liveCount: values.live === undefined ? undefined : Number(values.live),
    prices: parsePrices(values.prices),
    runscPath: values.runsc === undefined ? undefined : resolve(values.runsc),
    effort: values.smoke ? "smoke" : values.quick ? "quick" : "full",
    outDirectory: resolve(values.out),
    writeDocs: values["write-docs"],
    only,
  };
}

/** The command that repeats the measurement, without the output folder. */
export function describeArguments({ runscPath, effort, liveCount, only }: BenchArguments): string {
  const options = [
    ...(runscPath === undefined ? [] : [`--runsc ${basename(runscPath)}`]),
    ...(effort === "full" ? [] : [`--${effort}`]),
    ...(liveCount === undefined ? [] : [`--live ${liveCount}`]),
    ...(only.length === 0 ? [] : [`--only ${only.join(",")}`]),
  ];
  return ["npm run bench", ...(options.length === 0 ? [] : ["--", ...options])].join(" ");
}

function parsePrices(text: string): Prices {
  const [, get, put, list] = /^get=([\d.]+),put=([\d.]+),list=([\d.]+)$/.exec(text) ?? [];
  if (list === undefined) throw new Error(`--prices takes three prices, like ${DEFAULT_PRICES}.`);
  return { get: Number(get), put: Number(put), list: Number(list) };
}
