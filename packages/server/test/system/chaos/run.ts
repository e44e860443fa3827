import { mkdtemp, rm, writeFile } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { setTimeout as delay } from "node:timers/promises";
import { Random } from "../../lease/simulation/random.ts";
import type { Violation } from "./checker/violation.ts";
import type { ClientContext } from "./clients/client-context.ts";
import { Worker } from "./clients/worker.ts";
import { FaultInjector } from "./faults/fault-injector.ts";
import type { FaultName } from "./faults/fault-names.ts";
import { planEpisodes } from "./faults/plan.ts";
import { ServerSlot } from "./servers/server-slot.ts";
import { Watchdog } from "./servers/watchdog.ts";
import type { ChaosStore, StoreFault, StoreName } from "./stores/chaos-store.ts";
import { openDirectoryChaosStore } from "./stores/directory-chaos-store.ts";
import { openS3ChaosStore } from "./stores/s3-chaos-store.ts";
import { Tally } from "./tally.ts";

export type BackendName = "fake" | "gvisor";

export interface RunOptions {
  readonly seed: number;
  readonly seconds: number;
  readonly backend: BackendName;
  readonly store: StoreName;
  readonly faults: readonly FaultName[];
  readonly servers: number;
  readonly clients: number;
  readonly leaseTtlMs: number;
  /** Keep the servers' logs and the histories of all sandboxes, whatever comes out. */
  readonly keep: boolean;
  readonly say: (line: string) => void;
}

export interface RunResult {
  readonly tally: Tally;
  readonly faults: readonly { readonly name: string }[];
  readonly sandboxes: number;
  readonly failures: readonly Failure[];
  /** Where the servers' logs are; undefined when nothing is wrong and they were removed. */
  readonly folder: string | undefined;
}

/** The violation, and the history of the sandbox concerned. */
export interface Failure {
  readonly violation: Violation;
  readonly sandbox?: string;
  readonly history: readonly string[];
}

/** Shorter than some outages: what is given up then must be found again. */
const DRAIN_TIMEOUT_MS = 8_000;
const LOOK_MS = 500;
const FINISH_LIMIT_MS = 150_000;
/** The differences between backends. */
const PACE = {
  fake: { backgroundPauseSeconds: 0.03, thinkMs: 150 },
  gvisor: { backgroundPauseSeconds: 0.1, thinkMs: 600 },
} as const;

/** One run: servers, their store, clients, and faults from a seed, for so long. */
export async function runChaos(options: RunOptions): Promise<RunResult> {
  const watchdog = new Watchdog();
  const folder = await mkdtemp(join(tmpdir(), "sandboxer-chaos-"));
  const random = new Random(options.seed);
  const slots: ServerSlot[] = [];
  const store = await openStore(options, folder, slots, watchdog);
  const failures: Failure[] = [];
  const onViolation = (violation: Violation): void => void failures.push({ violation, history: [] });
  try {
    for (let index = 0; index < options.servers; index++) {
      slots.push(
        new ServerSlot({
          index,
          folder: join(folder, `server-${index}`),
          flags: flagsOf(options, store.addressFor(index)),
          launcher: index === 0 ? "npm" : "node",
          watchdog,
        }),
      );
    }
    await Promise.all(slots.map((slot) => slot.start()));
    const { leaseTtlMs, say } = options;
    const injector = new FaultInjector({
      slots,
      store,
      leaseTtlMs,
      drainTimeoutMs: DRAIN_TIMEOUT_MS,
      onViolation,
      say,
    });
    const tally = new Tally();
    const context: ClientContext = {
      slots,
      injector,
      tally,
      backend: options.backend,
      abortShare: options.faults.includes("abort") ? 0.04 : 0,
      ...PACE[options.backend],
      say,
      onViolation,
    };
    const workers = Array.from(
      { length: options.clients },
      (_, index) => new Worker(context, options.seed * 1_000 + index),
    );
    const faults = options.faults.filter((name) => !store.impossible.has(name as StoreFault));
    const episodes = planEpisodes(random, { faults, servers: options.servers, leaseTtlMs });
    await underFaults(options, injector, episodes, workers, onViolation);
    say("all faults are over");
    await finish(slots, injector, workers).catch((error: unknown) => {
      onViolation({ rule: "stuck", what: `After the faults: ${(error as Error).message}` });
    });
    injector.noteStalls();
    const lives = workers.flatMap((worker) => worker.lives);
    for (const { violations, id: sandbox, record } of lives) {
      for (const violation of violations) failures.push({ violation, sandbox, history: record.lines });
    }
    for (const { id, record } of lives) await writeFile(join(folder, `history-${id}`), record.lines.join("\n"));
    return {
      tally,
      faults: injector.injected,
      sandboxes: lives.length,
      failures,
      folder: failures.length === 0 && !options.keep ? undefined : folder,
    };
  } finally {
    await Promise.all(slots.map((slot) => slot.kill()));
    await store.close();
    if (failures.length === 0 && !options.keep)
      await rm(folder, { recursive: true, force: true, maxRetries: 20, retryDelay: 50 });
  }
}

async function underFaults(
  { seconds }: RunOptions,
  injector: FaultInjector,
  episodes: ReturnType<typeof planEpisodes>,
  workers: readonly Worker[],
  onViolation: (violation: Violation) => void,
): Promise<void> {
  const over = new AbortController();
  const timer = setTimeout(() => over.abort(), seconds * 1000);
  const look = async (): Promise<void> => {
    while (!over.signal.aborted) {
      injector.noteStalls();
      await injector.reviveCrashed();
      // A run that has failed need not continue.
      if (workers.some(({ lives }) => lives.some(({ violations }) => violations.length > 0))) over.abort();
      await delay(LOOK_MS, undefined, { signal: over.signal }).catch(() => {});
    }
  };
  const working = Promise.all(workers.map((worker) => worker.run(over.signal)));
  try {
    await Promise.all([look(), injector.run(episodes, over.signal)]);
  } catch (error) {
    onViolation({ rule: "stuck", what: (error as Error).message });
  } finally {
    over.abort();
    clearTimeout(timer);
    await working;
  }
}

/** Everything works again; and once more after all servers were stopped in good order. */
async function finish(
  slots: readonly ServerSlot[],
  injector: FaultInjector,
  workers: readonly Worker[],
): Promise<void> {
  const limit = AbortSignal.timeout(FINISH_LIMIT_MS);
  await Promise.all(workers.map((worker) => worker.finish(limit)));
  await Promise.all(slots.map((slot) => injector.stop(slot, "server")));
  await Promise.all(slots.map((slot) => injector.revive(slot)));
  await Promise.all(workers.map((worker) => worker.finish(limit)));
}

async function openStore(
  { store, servers, seed }: RunOptions,
  folder: string,
  slots: readonly ServerSlot[],
  watchdog: Watchdog,
): Promise<ChaosStore> {
  if (store === "s3") return await openS3ChaosStore(servers, new Random(seed + 1));
  return openDirectoryChaosStore(folder, (server, mode) => slots[server]?.control({ store: mode }), watchdog);
}

function flagsOf({ backend, leaseTtlMs }: RunOptions, store: string): string[] {
  const { SANDBOXER_TEST_RUNSC: runsc = "", SANDBOXER_TEST_PLATFORM: platform = "auto" } = process.env;
  const engine = backend === "gvisor" ? ["--runsc", runsc, "--platform", platform, "--warm-pool-max", "0"] : [];
  const lease = [
    "--lease-ttl",
    `${leaseTtlMs / 1000}s`,
    "--drain-timeout",
    `${DRAIN_TIMEOUT_MS / 1000}s`,
    "--collect-every",
    "1m",
  ];
  return ["--backend", backend, "--store", store, "--no-console", ...lease, ...engine];
}
