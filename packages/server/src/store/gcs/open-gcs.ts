import { SandboxerError } from "@sandboxer/protocol/errors";
import { parseBucketAddress } from "../bucket/address.ts";
import type { BucketStoreOptions } from "../bucket/bucket-api.ts";
import { BucketStore } from "../bucket/bucket-store.ts";
import { GcsApi } from "./gcs-api.ts";
import { type Authorize, GcsHttp } from "./gcs-http.ts";

const GOOGLE = "https://storage.googleapis.com";
const SCOPES = ["https://www.googleapis.com/auth/devstorage.read_write"];

/**
 * A store at `gs://bucket/prefix`. Credentials come from where every Google client takes them. An endpoint without TLS is
 * an emulator, and is sent none.
 */
export async function openGcsStore(address: string, options: BucketStoreOptions = {}): Promise<BucketStore> {
  const { text, bucket, prefix, parameters } = parseBucketAddress(address, ["endpoint"]);
  const endpoint = (parameters.get("endpoint") ?? GOOGLE).replace(/\/+$/, "");
  const http = new GcsHttp(endpoint.startsWith("https:") ? await googleCredentials() : anonymous);
  return new BucketStore(new GcsApi({ address: text, http, endpoint, bucket }), prefix, options);
}

const anonymous: Authorize = async () => new Headers();

async function googleCredentials(): Promise<Authorize> {
  const { GoogleAuth } = await loadLibrary();
  const auth = new GoogleAuth({ scopes: SCOPES });
  return async (url) => await auth.getRequestHeaders(url);
}

async function loadLibrary(): Promise<typeof import("google-auth-library")> {
  try {
    return await import("google-auth-library");
  } catch (error) {
    throw new SandboxerError(
      "not_supported",
      "Stores at gs:// addresses need google-auth-library, which is not here.",
      {
        cause: error,
        hint: "Run: npm install google-auth-library",
      },
    );
  }
}
