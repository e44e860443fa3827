import type { Retention } from "@sandboxer/protocol";
import { collectGarbage } from "../collection/collect-garbage.ts";
import type { Findings } from "../collection/garbage.ts";
import { systemClock } from "../support/clock.ts";
import { openExistingStore } from "./existing-store.ts";

export type { Findings, Garbage, GarbageKind, LeftAlone } from "../collection/garbage.ts";

export interface GarbageOptions {
  readonly store: string;
  readonly apply: boolean;
  readonly keep: Retention;
}

export async function collectGarbageAt({ store, ...options }: GarbageOptions): Promise<Findings> {
  return await collectGarbage({ ...options, store: await openExistingStore(store), clock: systemClock });
}
