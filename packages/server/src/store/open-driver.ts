import { resolve } from "node:path";
import { fileURLToPath } from "node:url";
import { SandboxerError } from "@sandboxer/protocol/errors";
import type { BucketStoreOptions } from "./bucket/bucket-api.ts";
import { type DirectoryOptions, DirectoryStore } from "./directory/directory-store.ts";
import type { ObjectStore } from "./store.ts";

/** Opens the driver for a path, a `file:` URL, or the URL of a bucket, without checking which store it is. */
export async function openDriver(
  address: string,
  options: BucketStoreOptions & DirectoryOptions = {},
): Promise<ObjectStore> {
  const scheme = /^([a-z][a-z0-9+.-]*):\/\//i.exec(address)?.[1]?.toLowerCase();
  if (address === "") throw new SandboxerError("bad_request", "The store's address is empty.");
  if (scheme === undefined) return await DirectoryStore.open(resolve(address), options);
  if (scheme === "file") return await DirectoryStore.open(fileURLToPath(address), options);
  // Their client libraries are loaded only here.
  if (scheme === "s3") return await (await import("./s3/open-s3.ts")).openS3Store(address, options);
  if (scheme === "gs") return await (await import("./gcs/open-gcs.ts")).openGcsStore(address, options);
  throw new SandboxerError("bad_request", `"${scheme}" is not a supported kind of store.`, {
    hint: "Use a path, a file: URL, s3://bucket/prefix or gs://bucket/prefix.",
  });
}
