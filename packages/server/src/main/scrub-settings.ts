import type { ScrubSettings } from "../manager/observing/integrity/integrity-context.ts";
import type { ServerConfig } from "./config.ts";

const WEEK_MS = 7 * 24 * 3_600_000;

/**
 * Disks lose bits silently, so a directory is read once a week. Buckets check their data themselves, and bill reads.
 */
export function scrubSettings({ store, scrubEvery, scrubRateMb }: ServerConfig): ScrubSettings {
  const isDirectory = store !== undefined && !/^(s3|gs):\/\//.test(store);
  const everyMs = scrubEvery === "auto" ? (isDirectory ? WEEK_MS : undefined) : scrubEvery;
  return { everyMs, rateMb: scrubRateMb === 0 ? undefined : scrubRateMb };
}
