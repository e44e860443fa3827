import type { Bug } from "./bugs.ts";
import type { Tally } from "./ledger.ts";
import type { Shrunk } from "./shrink.ts";

/** A violation in words: what was broken, and the faults that it takes. */
export function describeFailure({ result, runs, faults }: Shrunk, bug: Bug | undefined): string {
  const ordinals = faults.map(({ ordinal }) => ordinal).join(",");
  const again = `npm run sim -- --seed ${result.seed}${bug === undefined ? "" : ` --bug ${bug}`} --faults ${ordinals || "none"}`;
  return [
    `seed ${result.seed}: ${result.violation?.message ?? "no violation"} at ${Math.round(result.violation?.atMs ?? 0)} ms`,
    `shrunk in ${runs} runs to ${faults.length} faults:`,
    ...faults.map(({ kind, atMs, what }) => `  ${String(Math.round(atMs)).padStart(6)} ms  ${kind}: ${what}`),
    `again: ${again}`,
  ].join("\n");
}

export function addTally(total: Tally, tally: Tally): void {
  for (const key of Object.keys(tally) as (keyof Tally)[]) total[key] += tally[key];
}

export function describeTally(tally: Tally): string {
  return Object.entries(tally)
    .map(([name, count]) => `${name} ${count}`)
    .join(", ");
}
