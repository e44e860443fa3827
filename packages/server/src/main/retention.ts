import type { DurableStore } from "../manager/durable-store.ts";
import type { ServerConfig } from "./config.ts";

/** What stays of sandboxes that do not say. */
export function retentionOf({ keepCheckpoints, keepSnapshots }: ServerConfig): DurableStore["retention"] {
  return { checkpoints: keepCheckpoints, ...(keepSnapshots === undefined ? {} : { snapshots: keepSnapshots }) };
}
