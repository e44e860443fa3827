import { parseArgs } from "node:util";
import { basename, join, resolve } from "node:path";
import { fileURLToPath } from "node:url";

export interface BenchArguments {
  readonly runscPath: string | undefined;
  readonly quick: boolean;
  readonly outDirectory: string;
  readonly writeDocs: boolean;
  /** Names of measurements to run; empty: all. */
  readonly only: readonly string[];
}

export const BENCH_DIRECTORY: string = fileURLToPath(new URL(".", import.meta.url));
export const REPOSITORY: string = fileURLToPath(new URL("..", import.meta.url));

export const USAGE = `npm run bench [-- OPTIONS]
  --runsc PATH   measure this engine (default: the one that the server finds)
  --quick        fewer rounds and smaller heaps; for a first look, not for the record
  --only NAMES   comma-separated: create, exec, output, checkpoint, memory, handoff, requests
  --out DIR      where results go (default bench/out)
  --write-docs   also write docs/benchmarks.md and docs/benchmarks.svg; sections that were not measured stay
`;

export function parseArguments(argv: readonly string[]): BenchArguments {
  const { values } = parseArgs({
    args: [...argv],
    options: {
      runsc: { type: "string" },
      quick: { type: "boolean", default: false },
      only: { type: "string", default: "" },
      out: { type: "string", default: join(BENCH_DIRECTORY, "out") },
      "write-docs": { type: "boolean", default: false },
    },
  });
  return {
    runscPath: values.runsc === undefined ? undefined : resolve(values.runsc),
    quick: values.quick,
    outDirectory: resolve(values.out),
    writeDocs: values["write-docs"],
    only: values.only.split(",").filter((name) => name !== ""),
  };
}

/** The command that measures the same; where results go is nobody's business. */
export function describeArguments({ runscPath, quick, only }: BenchArguments): string {
  const options = [
    ...(runscPath === undefined ? [] : [`--runsc ${basename(runscPath)}`]),
    ...(quick ? ["--quick"] : []),
    ...(only.length === 0 ? [] : [`--only ${only.join(",")}`]),
  ];
  return ["npm run bench", ...(options.length === 0 ? [] : ["--", ...options])].join(" ");
}
