import { join } from "node:path";
import { SandboxerError } from "@sandboxer/protocol";
import type { Logger } from "pino";
import { CheckpointRepository } from "../checkpoints/checkpoint-repository.ts";
import { ImageStore } from "../checkpoints/image-store.ts";
import { PackCache } from "../checkpoints/packs/pack-cache.ts";
import { UnpackedImages } from "../checkpoints/unpacked-images.ts";
import { Instances } from "../lease/instances.ts";
import { ScrubRecords } from "../checkpoints/scrub/scrub-records.ts";
import { Ownership } from "../lease/ownership.ts";
import type { DurableStore } from "../manager/durable-store.ts";
import { KeyClaims } from "../records/key-claims.ts";
import type { SandboxRecords } from "../records/sandbox-records.ts";
import { StoreSandboxRecords } from "../records/store-sandbox-records.ts";
import { openStore } from "../store/open-store.ts";
import type { ObjectStore } from "../store/store.ts";
import { systemClock } from "../support/clock.ts";
import type { ServerConfig } from "./config.ts";
import { retentionOf } from "./retention.ts";
import { storedSnapshots } from "./snapshots.ts";
import { ringOver } from "./peers.ts";

export interface Durability {
  readonly durable: DurableStore;
  readonly instances: Instances;
  /** In the store when other machines use it too; a directory is this machine's. */
  readonly records: SandboxRecords | undefined;
  readonly claims: KeyClaims;
}

/** Opens the store, proves that it keeps its promises, and registers this process among its users. */
export async function openDurability(
  config: ServerConfig & { readonly store: string },
  url: string | undefined,
  log: Logger,
  onFenced: (error: SandboxerError) => void,
): Promise<Durability> {
  const store = await openStore(config.store);
  await store.probe();
  const instances = await Instances.register({
    store,
    clock: systemClock,
    ttlMs: config.leaseTtlMs,
    url: url ?? null,
    ring: ringOver(log),
    onFenced: (reason) => onFenced(new SandboxerError("lease_lost", `This server has lost its sandboxes: ${reason}`)),
    onError: (error) => log.warn({ err: error }, "the store did not answer a renewal or a look"),
  });
  const ownership = new Ownership(instances);
  const images = openImages(config, store, instances);
  const durable: DurableStore = {
    ownership,
    checkpoints: new CheckpointRepository(store, images),
    snapshots: await storedSnapshots(config, { store, images, instances }, log),
    retention: retentionOf(config),
  };
  const records = isBucket(config.store) ? new StoreSandboxRecords(store) : undefined;
  return { durable, instances, records, claims: new KeyClaims(store) };
}

function openImages(config: ServerConfig, store: ObjectStore, instances: Instances): ImageStore {
  const cache = new PackCache(join(config.dataDirectory, "cache", "packs"), config.packCacheMb * 1024 ** 2);
  const unpacked = new UnpackedImages(join(config.dataDirectory, "cache", "images"), config.imageCacheMb * 1024 ** 2);
    integrity: { images, records: new ScrubRecords(store) },
  return new ImageStore(store, { publisher: () => instances.instanceId, cache, unpacked, format: config.imageFormat });
}

/** How many sandboxes the store knows; a head that cannot be read is named in the log. */
export async function countStoredSandboxes(durable: DurableStore, log: Logger): Promise<number> {
  let count = 0;
  for await (const { sandboxId, head, error } of durable.ownership.list()) {
    if (head?.state !== "deleted") count += 1;
    if (error !== undefined) log.warn({ sandboxId, error: error.message }, "a stored sandbox cannot be read");
  }
  return count;
}

function isBucket(location: string): boolean {
  return /^(s3|gs):\/\//.test(location);
}
