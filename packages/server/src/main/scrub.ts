import { availableParallelism } from "node:os";
import { join } from "node:path";
import type { IntegrityReport } from "@sandboxer/protocol";
import { ImageStore } from "../checkpoints/image-store.ts";
import { StoredDataKeys } from "../checkpoints/keys/stored-data-keys.ts";
import { ScrubRecords } from "../checkpoints/scrub/scrub-records.ts";
import { SnapshotRepository } from "../checkpoints/snapshot-repository.ts";
import { listStoredSandboxes } from "../lease/stored-sandboxes.ts";
import { fullPass } from "../manager/observing/integrity/full-pass.ts";
import { lastOf, reportOf } from "../manager/observing/integrity/report.ts";
import type { CallOptions } from "../support/call-options.ts";
import { systemClock } from "../support/clock.ts";
import type { ServerConfig } from "./config.ts";
import { masterKeysOf } from "./encryption.ts";
import { openExistingStore } from "./existing-store.ts";
import { openSecrets } from "./secrets.ts";

/**
 * Checks everything in a store, without a server; servers can keep running. Packs of a remote store are cached in the
 * data directory while they are read.
 */
export async function scrubStoreAt(
  config: ServerConfig & { readonly store: string },
  { rateMb, ...options }: CallOptions & { readonly rateMb: number | undefined },
): Promise<IntegrityReport> {
  const store = await openExistingStore(config.store, config.dataDirectory);
  const dataKeys = new StoredDataKeys(
    store,
    masterKeysOf(
      config,
      openSecrets(config, () => {}),
    ),
  );
  const images = new ImageStore(store, { dataKeys });
  const snapshots = new SnapshotRepository(store, { publisher: () => "", images });
  const startedMs = systemClock.wallMs();
  const paced =
    rateMb === undefined || rateMb === 0 ? { threads: availableParallelism() } : { bytesPerSecond: rateMb * 1_000_000 };
  const scrub = images.scrub({
    clock: systemClock,
    ...paced,
    workDirectory: join(config.dataDirectory, "cache"),
  });
  const { result, stored } = await fullPass({ heads: () => listStoredSandboxes(store), snapshots }, scrub, options);
  const report = reportOf(result, stored, { startedMs, endedMs: systemClock.wallMs(), full: true });
  await new ScrubRecords(store).ended(lastOf(report));
  return report;
}
