import { mkdtemp, rm } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { setTimeout as delay } from "node:timers/promises";
import { HttpClient } from "../../../gateway/http/support.ts";
import { liveOnce } from "./life.ts";
import { riseOf } from "./slope.ts";
import { SoakedServer, type Usage } from "./soaked-server.ts";

export interface SoakOptions {
  readonly backend: "fake" | "gvisor";
  readonly seconds: number;
  readonly flags: readonly string[];
  readonly say: (line: string) => void;
}

export interface SoakResult {
  readonly lives: number;
  /** The figures that grew beyond their bounds. */
  readonly failures: readonly string[];
}

const MIB = 1024 * 1024;
const SAMPLES = 24;
/** The caches, rings and pools of a server fill up during the first samples. */
const WARM_UP_SAMPLES = 8;
const SETTLING_LOOKS = 20;
const SETTLING_MS = 250;

/**
 * How much a line through the samples after the warm-up may rise, whatever the number of sandboxes. Heap: what differs
 * from one collection of garbage to the next. The rest: one that is being removed while it is counted.
 */
const BOUNDS: Readonly<Partial<Record<keyof Usage, number>>> = {
  heapBytes: 4 * MIB,
  outsideBytes: 4 * MIB,
  descriptors: 3,
  cgroups: 2,
  dataEntries: 8,
  temporaryEntries: 2,
};

/** Sandboxes come and go for so long; now and then, when there is none, what the server uses is looked at. */
export async function runSoak({ backend, seconds, flags, say }: SoakOptions): Promise<SoakResult> {
  const folder = await mkdtemp(join(tmpdir(), "sandboxer-soak-"));
  const server = await SoakedServer.start(folder, ["--backend", backend, "--warm-pool-max", "0", ...flags]);
  const http = new HttpClient({ httpUrl: server.url });
  const workers = backend === "fake" ? 6 : 2;
  const samples: { lives: number; usage: Usage }[] = [];
  let lives = 0;
  try {
    for (let sample = 0; sample < SAMPLES; sample++) {
      const untilMs = performance.now() + (seconds * 1000) / SAMPLES;
      const work = async (worker: number): Promise<void> => {
        do await liveOnce(http, `${worker}-${lives++}`);
        while (performance.now() < untilMs);
      };
      await Promise.all(Array.from({ length: workers }, (_, worker) => work(worker)));
      const usage = await settledUsage(server, samples.at(-1)?.usage);
      samples.push({ lives, usage });
      say(`${String(lives).padStart(7)} lives  ${describe(usage)}`);
    }
    const code = await server.stop();
    const failures = [
      ...risesIn(samples.slice(WARM_UP_SAMPLES)),
      ...(code === 0 ? [] : [`The server ended with ${code}.`]),
    ];
    if (failures.length === 0) await rm(folder, { recursive: true, force: true });
    else say(`The server's log is ${join(folder, "log")}`);
    return { lives, failures };
  } catch (error) {
    say(`The server's log is ${join(folder, "log")}`);
    await server.stop();
    throw error;
  }
}

/** Higher figures may still shrink: a deletion is answered before the sandbox's last process has ended. */
async function settledUsage(server: SoakedServer, before: Usage | undefined): Promise<Usage> {
  let usage = await server.usage();
  const isMore = (name: keyof Usage): boolean => before !== undefined && usage[name] > before[name];
  for (let looks = 0; looks < SETTLING_LOOKS && (isMore("cgroups") || isMore("descriptors")); looks++) {
    await delay(SETTLING_MS);
    usage = await server.usage();
  }
  return usage;
}

function risesIn(samples: readonly { readonly lives: number; readonly usage: Usage }[]): string[] {
  return Object.entries(BOUNDS).flatMap(([name, bound]) => {
    const rise = riseOf(samples.map(({ lives, usage }) => [lives, usage[name as keyof Usage]]));
    if (rise <= bound) return [];
    const lives = (samples.at(-1)?.lives ?? 0) - (samples[0]?.lives ?? 0);
    return [`${name} rose by ${Math.round(rise)} over ${lives} lives; the bound is ${bound}.`];
  });
}

function describe({ heapBytes, outsideBytes, ...counts }: Usage): string {
  const memory = `heap ${(heapBytes / MIB).toFixed(1)} MiB, outside ${(outsideBytes / MIB).toFixed(1)} MiB`;
  const rest = Object.entries(counts).map(([name, count]) => `${name} ${count}`);
  return [memory, ...rest].join(", ");
}
