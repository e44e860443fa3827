import { parseBucketAddress } from "../bucket/address.ts";
import type { BucketStoreOptions } from "../bucket/bucket-api.ts";
import { BucketStore } from "../bucket/bucket-store.ts";
import { loadLibrary } from "../bucket/load-library.ts";
import { GcsApi } from "./gcs-api.ts";
import { type Authorize, GcsHttp } from "./gcs-http.ts";

const GOOGLE = "https://storage.googleapis.com";
const SCOPES = ["https://www.googleapis.com/auth/devstorage.read_write"];

/**
 * A store at `gs://bucket/prefix`. Credentials come from the usual places of Google clients. An endpoint without TLS is
 * an emulator, and gets none.
 */
export async function openGcsStore(address: string, options: BucketStoreOptions = {}): Promise<BucketStore> {
  const { text, bucket, prefix, parameters } = parseBucketAddress(address, ["endpoint"]);
  const endpoint = (parameters.get("endpoint") ?? GOOGLE).replace(/\/+$/, "");
  const http = new GcsHttp(endpoint.startsWith("https:") ? await googleCredentials() : anonymous);
  return new BucketStore(new GcsApi({ address: text, http, endpoint, bucket }), prefix, options);
}

const anonymous: Authorize = async () => new Headers();

async function googleCredentials(): Promise<Authorize> {
  const { GoogleAuth } = await loadLibrary("gs", "google-auth-library", () => import("google-auth-library"));
  const auth = new GoogleAuth({ scopes: SCOPES });
  return async (url) => await auth.getRequestHeaders(url);
}
