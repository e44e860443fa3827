import { mkdtemp } from "node:fs/promises";
import { join } from "node:path";
import { fakeGcsServer } from "../../test/kit/store-servers/fake-gcs-server.ts";
import { minio } from "../../test/kit/store-servers/minio.ts";
import { whyMissing, type StoreServer } from "../../test/kit/store-servers/test-server.ts";
import type { Lab } from "../lab.ts";

/** A kind of store to measure on. */
export interface BenchStore {
  readonly name: string;
  /** Where its server listens; a directory has none. */
  readonly endpoint: string | undefined;
  /** The address of an empty store, seen through another endpoint if one is given. */
  newStore(endpoint?: string): Promise<string>;
}

/** A directory, and the servers that are installed here; a missing one is reported by name. */
export async function openBenchStores(lab: Lab): Promise<BenchStore[]> {
  const directory: BenchStore = {
    name: "directory",
    endpoint: undefined,
    newStore: async () => await mkdtemp(join(lab.scratch, "store-")),
  };
  const buckets = [await startBucket(lab, "S3 (MinIO)", minio), await startBucket(lab, "GCS (fake)", fakeGcsServer)];
  return [directory, ...buckets.filter((store) => store !== undefined)];
}

async function startBucket(lab: Lab, name: string, server: StoreServer): Promise<BenchStore | undefined> {
  const missing = whyMissing(server);
  if (missing !== undefined) {
    lab.skipped.push({ what: `On ${name}`, why: missing });
    return undefined;
  }
  const running = await server.start();
  lab.cleanUp.add(() => running.stop());
  return { name, endpoint: running.endpoint, newStore: (endpoint) => running.newStore(endpoint) };
}
