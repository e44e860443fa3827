import { parseBucketAddress } from "../bucket/address.ts";
import type { BucketStoreOptions } from "../bucket/bucket-api.ts";
import { BucketStore } from "../bucket/bucket-store.ts";
import { loadLibrary } from "../bucket/load-library.ts";
import { S3Api } from "./s3-api.ts";

const CONNECT_LIMIT_MS = 5_000;

/** For servers that ignore the region. */
const ANY_REGION = "us-east-1";

/**
 * A store at `s3://bucket/prefix`, with `?endpoint=`, `&region=` and `&path-style=true|false`. Credentials, and the
 * region of AWS, come from the usual places of AWS clients.
 */
export async function openS3Store(address: string, options: BucketStoreOptions = {}): Promise<BucketStore> {
  const { text, bucket, prefix, parameters } = parseBucketAddress(address, ["endpoint", "region", "path-style"]);
  const endpoint = parameters.get("endpoint");
  const region = parameters.get("region") ?? (endpoint === undefined ? undefined : ANY_REGION);
  const pathStyle = parameters.get("path-style") ?? `${endpoint !== undefined}`;
  const sdk = await loadLibrary("s3", "@aws-sdk/client-s3", () => import("@aws-sdk/client-s3"));
  const settings = {
    ...(endpoint === undefined ? {} : { endpoint }),
    ...(region === undefined ? {} : { region }),
    forcePathStyle: pathStyle === "true",
    followRegionRedirects: endpoint === undefined,
    // Only the store itself retries.
    maxAttempts: 1,
    // The signature already covers the bytes, and not every server supports the newer checksums.
    requestChecksumCalculation: "WHEN_REQUIRED" as const,
    responseChecksumValidation: "WHEN_REQUIRED" as const,
    expectContinueHeader: false,
    requestHandler: { connectionTimeout: CONNECT_LIMIT_MS },
  };
  const [client, cells] = [new sdk.S3Client(settings), new sdk.S3Client(settings)];
  return new BucketStore(new S3Api({ address: text, sdk, client, cells, bucket }), prefix, options);
}
