import { join } from "node:path";
import type { Logger } from "pino";
import type { ImageStore } from "../checkpoints/image-store.ts";
import { SnapshotFile } from "../checkpoints/snapshot-file.ts";
import type { SnapshotLibrary } from "../checkpoints/snapshot-library.ts";
import { SnapshotMirror } from "../checkpoints/snapshot-mirror.ts";
import { SnapshotRepository } from "../checkpoints/snapshot-repository.ts";
import type { Instances } from "../lease/instances.ts";
import type { ObjectStore } from "../store/store.ts";
import type { ServerConfig } from "./config.ts";
import { importSnapshots } from "./import-records.ts";

/** The snapshots of a store; those of a directory are shown in a file beside the server's other records. */
export async function storedSnapshots(
  { dataDirectory, store: configured }: ServerConfig,
  {
    store,
    images,
    instances,
  }: { readonly store: ObjectStore; readonly images: ImageStore; readonly instances: Instances },
  log: Logger,
): Promise<SnapshotLibrary> {
  const publisher = (): string => instances.instanceId;
  if (store.localFile === undefined) return new SnapshotRepository(store, { publisher, images });
  const file = snapshotFile(dataDirectory);
  const mirror = new SnapshotMirror(file, (error) =>
    log.warn({ err: error, path: file.path }, "the record of snapshots could not be brought up to the store"),
  );
  const keepsBytes = configured !== undefined;
  const repository = new SnapshotRepository(store, { publisher, images, onChange: mirror.put, keepsBytes });
  if (!keepsBytes) await importSnapshots(file, repository);
  await mirror.rebuild(repository);
  return repository;
}

function snapshotFile(dataDirectory: string): SnapshotFile {
  return new SnapshotFile(join(dataDirectory, "snapshots.json"));
}
