import type { Retention } from "@sandboxer/protocol";
import { collectGarbage } from "../collection/collect-garbage.ts";
import { damagedIn, type Findings } from "../collection/garbage.ts";
import { systemClock } from "../support/clock.ts";
import type { ServerConfig } from "./config.ts";
import { masterKeysOf, sealedStore } from "./encryption.ts";
import { openExistingStore } from "./existing-store.ts";
import { openSecrets } from "./secrets.ts";

export type { Findings, Garbage, GarbageKind, LeftAlone } from "../collection/garbage.ts";

export interface GarbageOptions {
  readonly config: ServerConfig & { readonly store: string };
  readonly apply: boolean;
  readonly keep: Retention;
  readonly warn: (message: string) => void;
}

/** The findings, and the names of damaged objects. */
export type GarbageReport = Findings & { readonly damaged: readonly string[] };

export async function collectGarbageAt({ config, warn, ...options }: GarbageOptions): Promise<GarbageReport> {
  const opened = await openExistingStore(config.store, config.dataDirectory);
  const { store } = await sealedStore(opened, config, masterKeysOf(config, openSecrets(config, warn)), warn);
  const findings = await collectGarbage({ ...options, store, clock: systemClock });
  return { ...findings, damaged: damagedIn(findings) };
}
