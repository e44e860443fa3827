/**
 * `npm run test:chaos -- --seconds 120 --seed N --backend fake|gvisor|all --store directory|s3|all`: runs servers under
 * faults, with a checker that knows what they may do. Ends with 1 when a promise was broken, and prints the history of
 * the sandbox concerned and the command that runs the seed again. `--faults kill,stop` allows only those faults,
 * `--without vanish` all others; `--servers`, `--clients` and `--lease-ttl SECONDS` set their number and the lease. The
 * time is shared among the combinations of backend and store. `--keep` keeps the logs and histories of a run without a
 * violation too.
 */
import { parseArgs } from "node:util";
import { FAULT_NAMES, FAULTS, type FaultName } from "../packages/server/test/system/chaos/faults/fault-names.ts";
import { describeResult } from "../packages/server/test/system/chaos/report.ts";
import { runChaos, type BackendName } from "../packages/server/test/system/chaos/run.ts";
import type { StoreName } from "../packages/server/test/system/chaos/stores/chaos-store.ts";
import { minio } from "../test/kit/store-servers/minio.ts";
import { whyMissing } from "../test/kit/store-servers/test-server.ts";
import { planGvisorSuites } from "./testing/engines.ts";

const { values } = parseArgs({
  options: {
    seconds: { type: "string", default: "120" },
    seed: { type: "string" },
    backend: { type: "string", default: "all" },
    store: { type: "string", default: "all" },
    faults: { type: "string" },
    without: { type: "string" },
    servers: { type: "string" },
    clients: { type: "string" },
    keep: { type: "boolean", default: false },
    "lease-ttl": { type: "string", default: "3" },
  },
});

const seed = whole(values.seed, 1 + Math.floor(Math.random() * 1_000_000));
const backends = chosen(values.backend, ["fake", "gvisor"] as const);
const stores = chosen(values.store, ["directory", "s3"] as const);
const faults = (values.faults === undefined ? FAULT_NAMES : namesOf(values.faults)).filter(
  (name) => !namesOf(values.without ?? "").includes(name),
);
const parts = backends.flatMap((backend) => stores.map((store) => ({ backend, store })));
const seconds = whole(values.seconds, 120) / parts.length;

print(`seed ${seed}, faults ${faults.join(", ")}`);
let failed = 0;
for (const part of parts) failed += await runPart(part);
process.exitCode = failed === 0 ? 0 : 1;

async function runPart({ backend, store }: { backend: BackendName; store: StoreName }): Promise<number> {
  const startMs = performance.now();
  const missing =
    (store === "s3" ? whyMissing(minio) : undefined) ?? (backend === "gvisor" ? await whyNoEngine() : undefined);
  print(`\n== ${backend} on ${store}${missing === undefined ? `, ${Math.round(seconds)} s` : `: SKIPPED: ${missing}`}`);
  if (missing !== undefined) return process.env["CI"] === "true" ? 1 : 0;
  const result = await runChaos({
    seed,
    seconds,
    backend,
    store,
    faults,
    servers: whole(values.servers, backend === "fake" ? 3 : 2),
    clients: whole(values.clients, backend === "fake" ? 8 : 3),
    leaseTtlMs: whole(values["lease-ttl"], 3) * 1000,
    keep: values.keep,
    say: (line) => print(`${((performance.now() - startMs) / 1000).toFixed(1).padStart(7)} s  ${line}`),
  });
  const given = [
    ...(values.faults === undefined ? [] : [`--faults ${values.faults}`]),
    ...(values.without === undefined ? [] : [`--without ${values.without}`]),
  ];
  const again = [
    "npm run test:chaos --",
    `--seed ${seed} --seconds ${Math.round(seconds)}`,
    `--backend ${backend} --store ${store}`,
  ];
  print(describeResult(result, [...again, ...given].join(" ")));
  return result.failures.length;
}

/** Finds an engine unless the environment names one, as it does in `npm test`. */
async function whyNoEngine(): Promise<string | undefined> {
  if (process.env["SANDBOXER_TEST_RUNSC"] !== undefined) return undefined;
  const suites = await planGvisorSuites();
  const newest = suites.findLast((suite) => "env" in suite);
  if (newest !== undefined && "env" in newest) Object.assign(process.env, newest.env);
  const skipped = suites.find((suite) => "skippedBecause" in suite);
  return newest === undefined && skipped !== undefined && "skippedBecause" in skipped
    ? skipped.skippedBecause
    : undefined;
}

function chosen<Name extends string>(given: string, all: readonly Name[]): readonly Name[] {
  if (given === "all") return all;
  const found = all.filter((name) => name === given);
  return found.length > 0 ? found : wrong(`"${given}" is not one of ${all.join(", ")}, all.`);
}

function namesOf(list: string): FaultName[] {
  return list
    .split(",")
    .filter((name) => name !== "")
    .map(
      (name) =>
        FAULT_NAMES.find((known) => known === name) ?? wrong(`There is no fault ${name}; there are ${described()}.`),
    );
}

function described(): string {
  return FAULT_NAMES.map((name) => `${name} (${FAULTS[name]})`).join(", ");
}

function whole(text: string | undefined, otherwise: number): number {
  const number = text === undefined ? otherwise : Number(text);
  return Number.isSafeInteger(number) && number > 0 ? number : wrong(`"${text}" is not a whole number above 0.`);
}

function wrong(why: string): never {
  process.stderr.write(`${why}\n`);
  process.exit(2);
}

function print(text: string): void {
  process.stdout.write(`${text}\n`);
}
