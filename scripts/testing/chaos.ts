import { minio } from "../../test/kit/store-servers/minio.ts";
import { whyMissing } from "../../test/kit/store-servers/test-server.ts";
import { LONG_RUNS, USUAL_RUNS, type ChaosRun } from "./chaos-runs.ts";
import type { Planned } from "./engines.ts";

const SCRIPT = new URL("../chaos.ts", import.meta.url).pathname;
const SPARE_MS = 10 * 60_000;

/** Servers under faults, on the fake backend and on the newest engine. */
export function planChaosSuites(
  gvisorSuites: readonly Planned[],
  which: "usual" | "all" = "usual",
): readonly Planned[] {
  const engine = gvisorSuites.findLast((suite) => "env" in suite) ?? gvisorSuites.at(-1);
  return (which === "usual" ? USUAL_RUNS : LONG_RUNS).map((run) => plan(run, engine));
}

function plan({ backend, store, seed, seconds }: ChaosRun, engine: Planned | undefined): Planned {
  const on = `${backend}, ${store}`;
  const missing =
    (store === "s3" ? whyMissing(minio) : undefined) ?? (backend === "gvisor" ? whyNot(engine) : undefined);
  if (missing !== undefined) return { name: "chaos", on, skippedBecause: missing };
  const env = backend === "gvisor" && engine !== undefined && "env" in engine ? (engine.env ?? {}) : {};
  const flags = ["--seconds", String(seconds), "--backend", backend, "--store", store];
  const argv = [process.execPath, SCRIPT, ...flags, ...(seed === undefined ? [] : ["--seed", String(seed)])];
  return { name: "chaos", on, argv, env, timeoutMs: SPARE_MS + seconds * 1000, vitest: false };
}

function whyNot(engine: Planned | undefined): string | undefined {
  if (engine === undefined) return "No engine was looked for.";
  return "skippedBecause" in engine ? engine.skippedBecause : undefined;
}
