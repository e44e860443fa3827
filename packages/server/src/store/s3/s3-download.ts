import type { GetObjectCommandOutput, S3Client } from "@aws-sdk/client-s3";
import type { Readable } from "node:stream";
import type { ByteRange, OpenedBlob } from "../bucket/bucket-api.ts";
import { BucketError } from "../bucket/bucket-error.ts";
import { receive, receiveNothing } from "../bucket/receive.ts";
import { SMALL_LIMIT_MS } from "../bucket/time-limit.ts";
import { statusOf } from "./s3-errors.ts";
import { request, type S3Sdk } from "./s3-request.ts";

/** Begins to read an object; a range beyond its end gives nothing. Throws `absent`. */
export async function openObject(
  sdk: S3Sdk,
  client: S3Client,
  target: { readonly Bucket: string; readonly Key: string },
  range: ByteRange,
  signal: AbortSignal | undefined,
): Promise<OpenedBlob> {
  const command = new sdk.GetObjectCommand({
    ...target,
    ...(range.start === 0 && range.end === undefined ? {} : { Range: rangeHeader(range) }),
    ...(range.version === undefined ? {} : { IfMatch: range.version }),
  });
  let found: GetObjectCommandOutput;
  try {
    found = await request(SMALL_LIMIT_MS, signal, (sending) => client.send(command, sending));
  } catch (error) {
    if (error instanceof BucketError && statusOf(error.cause) === 416) {
      return { chunks: receiveNothing(), version: undefined };
    }
    throw error;
  }
  const body = found.Body as Readable;
  return { chunks: receive(body, found.ContentLength, (reason) => body.destroy(reason)), version: found.ETag };
}

/** HTTP's ranges name their last byte. */
function rangeHeader({ start, end }: ByteRange): string {
  return `bytes=${start}-${end === undefined ? "" : end - 1}`;
}
