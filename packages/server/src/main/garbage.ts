import type { Retention } from "@sandboxer/protocol";
import { collectGarbage } from "../collection/collect-garbage.ts";
import { damagedIn, type Findings } from "../collection/garbage.ts";
import { systemClock } from "../support/clock.ts";
import { openExistingStore } from "./existing-store.ts";

export type { Findings, Garbage, GarbageKind, LeftAlone } from "../collection/garbage.ts";

export interface GarbageOptions {
  readonly store: string;
  /** Of this machine's servers: it knows which stores they have used. */
  readonly dataDirectory: string;
  readonly apply: boolean;
  readonly keep: Retention;
}

/** What was found, and what of it is damaged, by its name. */
export type GarbageReport = Findings & { readonly damaged: readonly string[] };

export async function collectGarbageAt({ store, dataDirectory, ...options }: GarbageOptions): Promise<GarbageReport> {
  const opened = await openExistingStore(store, dataDirectory);
  const findings = await collectGarbage({ ...options, store: opened, clock: systemClock });
  return { ...findings, damaged: damagedIn(findings) };
}
