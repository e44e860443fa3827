import { existsSync } from "node:fs";
import { type Retention, SandboxerError } from "@sandboxer/protocol";
import { collectGarbage } from "../collection/collect-garbage.ts";
import type { Findings } from "../collection/garbage.ts";
import { openStore } from "../store/open-store.ts";
import { systemClock } from "../support/clock.ts";

export type { Findings, Garbage, GarbageKind, LeftAlone } from "../collection/garbage.ts";

export interface GarbageOptions {
  readonly store: string;
  readonly apply: boolean;
  readonly keep: Retention;
}

export async function collectGarbageAt({ store, ...options }: GarbageOptions): Promise<Findings> {
  // To open a directory is to make it, which is not what a mistyped path is for.
  if (!/^[a-z0-9]+:\/\//i.test(store) && !existsSync(store)) {
    throw new SandboxerError("store_unavailable", `There is no store at ${store}.`, {
      hint: "Give the address that the servers use, with --store.",
    });
  }
  return await collectGarbage({ ...options, store: await openStore(store), clock: systemClock });
}
