import { randomBytes } from "node:crypto";
import { join } from "node:path";
import { setTimeout as delay } from "node:timers/promises";
import { asSandboxerError, SandboxerError, parseCopyId } from "@sandboxer/protocol";
import type { Logger } from "pino";
import { CheckpointRepository } from "../checkpoints/checkpoint-repository.ts";
import { ImageStore, type ImageStoreOptions } from "../checkpoints/image-store.ts";
import { StoredDataKeys } from "../checkpoints/keys/stored-data-keys.ts";
import { PackCache } from "../checkpoints/packs/pack-cache.ts";
import { UnpackedImages } from "../checkpoints/unpacked-images.ts";
import { UnpublishedCheckpoints } from "../checkpoints/unpublished/unpublished-checkpoints.ts";
import { SnapshotFile, SnapshotMirror } from "../checkpoints/snapshot-file.ts";
import { SnapshotRepository } from "../checkpoints/snapshot-repository.ts";
import { ScrubRecords } from "../checkpoints/scrub/scrub-records.ts";
import { type Fate, forgetDeadInstances, isInstanceGone } from "../backends/instance-folder.ts";
import { PeerSecret } from "../gateway/access/peer-secret.ts";
import type { SharedState } from "../gateway/http/handlers/index.ts";
import { Instances } from "../lease/instances.ts";
import { KeyClaims } from "../lease/key-claims.ts";
import { Ownership } from "../lease/ownership.ts";
import { SandboxIndexFile } from "../lease/sandbox-index-file.ts";
import type { DurableStore } from "../manager/durable-store.ts";
import type { SecretResolver } from "../secrets/secret.ts";
import { DirectoryStore } from "../store/directory/directory-store.ts";
import { KnownStores } from "../store/known-stores.ts";
import { openStore } from "../store/open-store.ts";
import { openPeerSecret } from "../store/peer-secret.ts";
import { SharedRecords } from "../store/shared-records.ts";
import type { ObjectStore } from "../store/store.ts";
import { systemClock } from "../support/clock.ts";
import { keptAnswer } from "../support/kept-answer.ts";
import { isStoreFailure } from "../support/record-damage.ts";
import type { ServerConfig } from "./config.ts";
import { checkEncryption, masterKeysOf, sealedStore } from "./encryption.ts";
import { importRecords, importSnapshots } from "./import-records.ts";
import { ringOver } from "./peers.ts";
import type { Tls } from "./tls.ts";

const MEET_AFTER_MS = 2_000;
/** Servers rarely come and go, and each save asks what they can read. */
const KEEP_KNOWN_MS = 5 * 60_000;

/**
 * For servers without a configured store, whose registry is used only by processes of this machine: those detect the
 * end of another by its lock, at once, so no renewals are needed, and an idle server writes nothing. Timers are limited
 * to 25 days.
 */
const REGISTRY_TTL_MS = 5 * 24 * 3_600_000;
const REGISTRY_LEASE = { renewRetryMs: 1_000, waitPollMs: 250 };

export interface Durability {
  readonly durable: DurableStore;
  readonly instances: Instances;
  readonly peerSecret: PeerSecret;
  /** Undefined without a configured store. */
  readonly records: SharedRecords | undefined;
  /** How many live servers share the store, this one included. */
  readonly servers: () => number;
  /** Dead servers of this machine; the store says so by now. */
  readonly dead: readonly string[];
}

/**
 * Opens the store, or the registry in the data directory if none is configured; tests its guarantees, and registers
 * this process.
 */
export async function openDurability(
  config: ServerConfig,
  secrets: SecretResolver,
  url: string | undefined,
  log: Logger,
  { onFenced, peerTls }: { onFenced: (error: SandboxerError) => void; peerTls?: Tls["peerTls"] },
): Promise<Durability> {
  const saves = config.store !== undefined;
  const masters = saves ? masterKeysOf(config, secrets) : undefined;
  if (masters !== undefined) await checkEncryption(config, masters);
  const opened =
    config.store === undefined
      ? await openStore(registryFolder(config), { syncs: "behind the answer" })
      : await openStore(config.store, {
          known: new KnownStores(config.dataDirectory),
          mustExist: config.requireStore,
        });
  await opened.probe();
  const { store, keys: ownKeys } =
    masters === undefined
      ? { store: opened, keys: [] }
      : await sealedStore(opened, config, masters, (message) => log.warn(message));
  const peerSecret = new PeerSecret(await peerSecretOf(opened, log), ownKeys);
  const instances = await Instances.register({
    store,
    clock: systemClock,
    ttlMs: saves ? config.leaseTtlMs : REGISTRY_TTL_MS,
    ...(saves ? {} : { settings: REGISTRY_LEASE }),
    url: url ?? null,
    advert: { labels: config.serverLabels },
    ring: ringOver(peerSecret, log, peerTls),
    onFenced: (reason) => onFenced(new SandboxerError("lease_lost", `This server has lost its sandboxes: ${reason}`)),
    onError: (error) => log.warn({ err: error }, "the store did not answer a lease renewal or read"),
  });
  const { dataDirectory } = config;
  const dead = await forgetDeadInstances(dataDirectory, async (_, allIds) => {
    for (const instanceId of allIds) await instances.markDead(instanceId);
  });
  const indexFile = new SandboxIndexFile(join(config.dataDirectory, "cache", "stored-sandboxes"), store.address);
  const ownership = new Ownership(instances, {
    indexFile,
    isGone: (instanceId) => isInstanceGone(dataDirectory, instanceId),
  });
  const claims = new KeyClaims(store);
  await importRecords(dataDirectory, { store, ownership, claims }, log);
  const keys = new StoredDataKeys(store, masters);
  const publisher = (): string => instances.instanceId;
  const packsHaveOwners = keptAnswer(KEEP_KNOWN_MS, () => instances.allKnow("owned-packs"));
  const bindsOrigin = keptAnswer(KEEP_KNOWN_MS, () => instances.allKnow("image-origin"));
  const images = openImages(config, store, { publisher, dataKeys: keys, packsHaveOwners, bindsOrigin });
  const durable: DurableStore = {
    saves,
    ownership,
    claims,
    checkpoints: new CheckpointRepository(store, images),
    snapshots: await openSnapshots(config, store, { publisher, images, keepsBytes: saves }, log),
    unpublished: new UnpublishedCheckpoints(join(dataDirectory, "unpublished"), {
      store: store.address,
      masters: masters ?? masterKeysOf(config, secrets),
      openFolder: (folder) => DirectoryStore.open(folder),
    }),
    ...(saves ? { keys, integrity: { images, records: new ScrubRecords(store) } } : {}),
    retention: retentionOf(config),
  };
  const records = saves ? new SharedRecords(store, systemClock) : undefined;
  return { durable, instances, peerSecret, records, servers: () => 1 + instances.liveOthers.length, dead };
}

/** State that the servers of a store share, besides sandboxes; undefined without a configured store. */
export function sharedState({ records, peerSecret }: Durability, log: Logger): SharedState | undefined {
  if (records === undefined) return undefined;
  const onFailure = (error: unknown): void =>
    log.warn({ err: error }, "a record for the other servers of the store could not be written");
  return { records, secret: peerSecret, onFailure };
}

/** Without the shared secret a server still works; the others only notice its requests a little later. */
async function peerSecretOf(store: ObjectStore, log: Logger): Promise<Buffer> {
  return await openPeerSecret(store).catch((error: unknown) => {
    if (isStoreFailure(error)) throw error;
    log.warn(
      { err: error },
      "the shared secret of the store's servers is damaged; other servers reject this server's notifications",
    );
    return randomBytes(32);
  });
}

/** For sandboxes that are found at a provider. */
export async function fateOf({ durable, instances }: Durability, id: string): Promise<Fate> {
  const known = parseCopyId(id);
  const head = known === undefined ? undefined : await durable.ownership.read(known.sandboxId);
  if (head?.state === "deleted") return "destroyed";
  const isOthers = head?.owner != null && head.owner !== instances.instanceId;
  if (isOthers && !(await instances.isDead(head.owner ?? ""))) return "held";
  // Another copy replaced it, or it never became the sandbox.
  return head === undefined || (head.copy ?? 0) === known?.copy ? "free" : "destroyed";
}

function registryFolder({ dataDirectory }: ServerConfig): string {
  return join(dataDirectory, "registry");
}

function openImages(
  config: ServerConfig,
  store: ObjectStore,
  options: Pick<ImageStoreOptions, "publisher" | "dataKeys" | "packsHaveOwners" | "bindsOrigin">,
): ImageStore {
  const cache = new PackCache(join(config.dataDirectory, "cache", "packs"), config.packCacheMb * 1024 ** 2);
  const unpacked = new UnpackedImages(join(config.dataDirectory, "cache", "images"), config.imageCacheMb * 1024 ** 2);
  return new ImageStore(store, { ...options, cache, unpacked });
}

/** The snapshots of a store; those of a directory are mirrored in a file beside the server's other records. */
async function openSnapshots(
  { dataDirectory }: ServerConfig,
  store: ObjectStore,
  options: { readonly publisher: () => string; readonly images: ImageStore; readonly keepsBytes: boolean },
  log: Logger,
): Promise<SnapshotRepository> {
  if (store.localFile === undefined) return new SnapshotRepository(store, options);
  const file = new SnapshotFile(join(dataDirectory, "snapshots.json"));
  const mirror = new SnapshotMirror(file, (error) =>
    log.warn({ err: error, path: file.path }, "the local snapshot records could not be synchronized with the store"),
  );
  const repository = new SnapshotRepository(store, { ...options, onChange: mirror.put });
  if (!options.keepsBytes) await importSnapshots(file, repository);
  await mirror.rebuild(repository);
  return repository;
}

/** Reads the sandboxes of the store in the background, so that the first list is fast. */
export async function meetStoredSandboxes({ ownership }: DurableStore, log: Logger): Promise<void> {
  // Starting the server comes first.
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

/** The retention of sandboxes that do not set it. */
function retentionOf({ keepCheckpoints, keepSnapshots }: ServerConfig): DurableStore["retention"] {
  return { checkpoints: keepCheckpoints, ...(keepSnapshots === undefined ? {} : { snapshots: keepSnapshots }) };
}
