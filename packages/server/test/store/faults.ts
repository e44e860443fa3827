import { afterEach, beforeEach } from "vitest";
import { openDriver } from "../../src/store/open-driver.ts";
import type { ObjectStore } from "../../src/store/store.ts";
import { type Fault, FaultyProxy, type SeenRequest } from "../../../../test/kit/faulty-proxy.ts";
import { fakeGcsServer } from "../../../../test/kit/store-servers/fake-gcs-server.ts";
import type { RunningStoreServer, StoreServer } from "../../../../test/kit/store-servers/test-server.ts";
import { UploadSessions } from "../../../../test/kit/upload-sessions.ts";

export const writes = ({ method }: SeenRequest): boolean => method !== "GET" && method !== "HEAD";
export const reads = ({ method }: SeenRequest): boolean => method === "GET" || method === "HEAD";

/** Faults after which the outcome of a write is unknown. */
export const UNCLEAR: readonly (readonly [string, Fault])[] = [
  ["a lost request", "request-lost"],
  ["a lost answer", "answer-lost"],
  ["409", { status: 409 }],
  ["429", { status: 429 }],
  ["500", { status: 500 }],
  ["503", { status: 503 }],
  ["500 after it was carried out", { statusInstead: 500 }],
];

export interface Setting {
  readonly proxy: FaultyProxy;
  /** Behind the proxy. */
  readonly store: ObjectStore;
  /** The same one, undisturbed. */
  readonly direct: ObjectStore;
  /** The size of its parts. */
  readonly partBytes: number;
}

/** As small as S3 allows, and as Google does: a fault means that a part is sent again. */
const S3_PART_BYTES = 5 * 1024 * 1024;
const GCS_PART_BYTES = 256 * 1024;

/** An empty store behind a proxy for each test. */
export function behindFaults(server: StoreServer, running: () => RunningStoreServer): () => Setting {
  let setting: Setting;
  beforeEach(async () => {
    const proxy = await FaultyProxy.start(running().endpoint);
    if (server === fakeGcsServer) proxy.sessions = new UploadSessions();
    const address = await running().newStore(proxy.endpoint);
    const directAddress = address.replace(proxy.endpoint, running().endpoint);
    const parts = { partBytes: address.startsWith("s3:") ? S3_PART_BYTES : GCS_PART_BYTES };
    setting = {
      proxy,
      store: await openDriver(address, parts),
      direct: await openDriver(directAddress, parts),
      ...parts,
    };
  });
  afterEach(async () => await setting.proxy.stop());
  return () => setting;
}
