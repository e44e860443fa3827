import { minio } from "../../test/kit/store-servers/minio.ts";
import { whyMissing } from "../../test/kit/store-servers/test-server.ts";
import type { Planned } from "./engines.ts";

const SCRIPT = new URL("../chaos.ts", import.meta.url).pathname;
const SPARE_MS = 10 * 60_000;

type Backend = "fake" | "gvisor";
type Store = "directory" | "s3";

/** Every backend and every store once, with seeds that together have all faults: a minute and a half. */
const USUAL = [
  { backend: "fake", store: "s3", seed: 12, seconds: 45 },
  { backend: "gvisor", store: "directory", seed: 20, seconds: 45 },
] as const;

/** Every backend on every store. */
const ALL = (["fake", "gvisor"] as const).flatMap((backend) =>
  (["directory", "s3"] as const).map((store) => ({ backend, store, seed: undefined, seconds: 300 })),
);

/** Servers under faults, on the fake backend and on the newest engine. */
export function planChaosSuites(
  gvisorSuites: readonly Planned[],
  which: "usual" | "all" = "usual",
): readonly Planned[] {
  const engine = gvisorSuites.findLast((suite) => "env" in suite) ?? gvisorSuites.at(-1);
  return (which === "usual" ? USUAL : ALL).map((run) => plan(run, engine));
}

function plan(
  run: {
    readonly backend: Backend;
    readonly store: Store;
    readonly seed: number | undefined;
    readonly seconds: number;
  },
  engine: Planned | undefined,
): Planned {
  const { backend, store, seed, seconds } = run;
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
