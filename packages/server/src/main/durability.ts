import { join } from "node:path";
import { setTimeout as delay } from "node:timers/promises";
import { asSandboxerError, SandboxerError } from "@sandboxer/protocol";
import type { Logger } from "pino";
import { CheckpointRepository } from "../checkpoints/checkpoint-repository.ts";
import { ImageStore } from "../checkpoints/image-store.ts";
import { StoredDataKeys } from "../checkpoints/keys/stored-data-keys.ts";
import { PackCache } from "../checkpoints/packs/pack-cache.ts";
import { UnpackedImages } from "../checkpoints/unpacked-images.ts";
import { ScrubRecords } from "../checkpoints/scrub/scrub-records.ts";
import { Instances } from "../lease/instances.ts";
import { Ownership } from "../lease/ownership.ts";
import { SandboxIndexFile } from "../lease/sandbox-index-file.ts";
import type { DurableStore } from "../manager/durable-store.ts";
import { KeyClaims } from "../records/key-claims.ts";
import type { SandboxRecords } from "../records/sandbox-records.ts";
import { StoreSandboxRecords } from "../records/store-sandbox-records.ts";
import type { SecretResolver } from "../secrets/secret.ts";
import { openStore } from "../store/open-store.ts";
import type { ObjectStore } from "../store/store.ts";
import { systemClock } from "../support/clock.ts";
import type { ServerConfig } from "./config.ts";
import { checkEncryption, masterKeysOf } from "./encryption.ts";
import { retentionOf } from "./retention.ts";
import { storedSnapshots } from "./snapshots.ts";
import { ringOver } from "./peers.ts";

const MEET_AFTER_MS = 2_000;

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
  secrets: SecretResolver,
  url: string | undefined,
  log: Logger,
  onFenced: (error: SandboxerError) => void,
): Promise<Durability> {
  const masters = masterKeysOf(config, secrets);
  await checkEncryption(config, masters);
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
  const indexFile = new SandboxIndexFile(join(config.dataDirectory, "cache", "stored-sandboxes"), store.address);
  const ownership = new Ownership(instances, indexFile);
  const keys = new StoredDataKeys(store, masters, config.imageFormat);
  const images = openImages(config, store, instances, keys);
  const durable: DurableStore = {
    ownership,
    checkpoints: new CheckpointRepository(store, images),
    snapshots: await storedSnapshots(config, { store, images, instances }, log),
    keys,
    retention: retentionOf(config),
    integrity: { images, records: new ScrubRecords(store) },
  };
  const records = isBucket(config.store) ? new StoreSandboxRecords(store) : undefined;
  return { durable, instances, records, claims: new KeyClaims(store) };
}

function openImages(
  config: ServerConfig,
  store: ObjectStore,
  instances: Instances,
  dataKeys: StoredDataKeys,
): ImageStore {
  const cache = new PackCache(join(config.dataDirectory, "cache", "packs"), config.packCacheMb * 1024 ** 2);
  const unpacked = new UnpackedImages(join(config.dataDirectory, "cache", "images"), config.imageCacheMb * 1024 ** 2);
  const publisher = (): string => instances.instanceId;
  return new ImageStore(store, { publisher, cache, unpacked, format: config.imageFormat, dataKeys });
}

/** Meets the sandboxes that the store has, behind all else, so that the first list finds them known. */
export async function meetStoredSandboxes({ ownership }: DurableStore, log: Logger): Promise<void> {
  // Who waits for the server to start comes first.
  await delay(MEET_AFTER_MS, undefined, { ref: false });
  try {
    const { sorted, others } = await ownership.index.look();
    for (const { sandboxId, error } of others)
      if (error !== undefined) log.warn({ sandboxId, error: error.message }, "a stored sandbox cannot be read");
    const destroyed = sorted.filter(({ sandboxId }) => ownership.index.isDestroyed(sandboxId)).length;
    log.info({ stored: sorted.length + others.length - destroyed }, "stored sandboxes");
  } catch (error) {
    if (asSandboxerError(error).code !== "draining")
      log.warn({ err: error }, "the stored sandboxes could not be listed");
  }
}

function isBucket(location: string): boolean {
  return /^(s3|gs):\/\//.test(location);
}
