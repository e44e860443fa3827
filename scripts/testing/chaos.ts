import { minio } from "../../test/kit/store-servers/minio.ts";
import { whyMissing } from "../../test/kit/store-servers/test-server.ts";
import type { Planned } from "./engines.ts";

const SCRIPT = new URL("../chaos.ts", import.meta.url).pathname;
/** Two minutes for all four. */
const SECONDS = "30";
/** Other faults for each: together all of them. */
const SEEDS = { fake: { directory: 5, s3: 12 }, gvisor: { directory: 20, s3: 6 } } as const;
const TIMEOUT_MS = 10 * 60_000;

/** Servers under faults: on the fake backend and on the newest engine, each with a directory and with a bucket. */
export function planChaosSuites(gvisorSuites: readonly Planned[]): readonly Planned[] {
  const engine = gvisorSuites.findLast((suite) => "env" in suite) ?? gvisorSuites.at(-1);
  return (["directory", "s3"] as const).flatMap((store) => [plan("fake", store, {}), planOn(engine, store)]);
}

function planOn(engine: Planned | undefined, store: "directory" | "s3"): Planned {
  if (engine !== undefined && "env" in engine && engine.env !== undefined) return plan("gvisor", store, engine.env);
  const reason =
    engine !== undefined && "skippedBecause" in engine ? engine.skippedBecause : "No engine was looked for.";
  return { name: "chaos", on: `gvisor, ${store}`, skippedBecause: reason };
}

function plan(backend: "fake" | "gvisor", store: "directory" | "s3", env: Readonly<Record<string, string>>): Planned {
  const on = `${backend}, ${store}`;
  const missing = store === "s3" ? whyMissing(minio) : undefined;
  if (missing !== undefined) return { name: "chaos", on, skippedBecause: missing };
  const seed = String(SEEDS[backend][store]);
  const flags = ["--seconds", SECONDS, "--seed", seed, "--backend", backend, "--store", store];
  return { name: "chaos", on, argv: [process.execPath, SCRIPT, ...flags], env, timeoutMs: TIMEOUT_MS, vitest: false };
}
