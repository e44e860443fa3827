import type { S3Client } from "@aws-sdk/client-s3";
import { LARGEST_CELL_BYTES } from "../cell-limit.ts";
import type { Readable } from "node:stream";
import type {
  BucketApi,
  ByteRange,
  LargeUpload,
  ListPage,
  ListRequest,
  OpenedBlob,
  PutOptions,
  RequestOptions,
  StoredCell,
  StoredHead,
  UploadOptions,
} from "../bucket/bucket-api.ts";
import { BucketError, COMMON_REMEDIES, hasFailed, type Remedies, unlessAbsent } from "../bucket/bucket-error.ts";
import { rangeHeader, receive, receiveNothing } from "../bucket/receive.ts";
import { CELL_LIMIT_MS, PART_LIMIT_MS, SMALL_LIMIT_MS } from "../bucket/time-limit.ts";
import { statusOf } from "./s3-errors.ts";
import { request, type S3Sdk } from "./s3-request.ts";
import { S3Upload } from "./s3-upload.ts";
import { randomBytes } from "node:crypto";

const REMEDIES: Remedies = {
  ...COMMON_REMEDIES,
  credentials:
    "Set AWS_ACCESS_KEY_ID and AWS_SECRET_ACCESS_KEY, or AWS_PROFILE, or run with a role that has access to the bucket.",
  rights:
    "Allow s3:ListBucket on the bucket, and s3:GetObject, s3:PutObject, s3:DeleteObject and s3:AbortMultipartUpload below the prefix (docs/reference/stores.md).",
  region: "Name the bucket's region: s3://bucket/prefix?region=eu-central-1, or AWS_REGION.",
};

export interface S3ApiOptions {
  readonly address: string;
  readonly sdk: S3Sdk;
  /** Must not retry by itself. */
  readonly client: S3Client;
  /** For cells, as `client`: blobs may use all of its connections while a lease must be renewed. */
  readonly cells: S3Client;
  readonly bucket: string;
}

/** The requests to S3 and compatible servers. */
export class S3Api implements BucketApi {
  readonly address: string;
  readonly remedies = REMEDIES;
  readonly #sdk: S3Sdk;
  readonly #client: S3Client;
  readonly #cells: S3Client;
  readonly #bucket: string;
  /** Ceph before version 20 never matches a quoted tag. */
  #quotesTags = true;

  constructor({ address, sdk, client, cells, bucket }: S3ApiOptions) {
    this.address = address;
    this.#sdk = sdk;
    this.#client = client;
    this.#cells = cells;
    this.#bucket = bucket;
  }

  async getCell(name: string): Promise<StoredCell | undefined> {
    const command = new this.#sdk.GetObjectCommand(this.#target(name));
    return await unlessAbsent(() =>
      request(CELL_LIMIT_MS, undefined, async (sending) => {
        const { Body, ETag, ContentLength = 0 } = await this.#cells.send(command, sending);
        if (ContentLength > LARGEST_CELL_BYTES) {
          (Body as Readable | undefined)?.destroy();
          return { body: undefined, version: bareTag(ETag) };
        }
        const stored = (await Body?.transformToByteArray()) ?? new Uint8Array();
        return { body: withoutTrailer(stored), version: bareTag(ETag) };
      }),
    );
  }

  async putCell(name: string, expected: string | undefined, body: Uint8Array): Promise<string> {
    // An empty header would be omitted, and `*` matches everything.
    if (expected !== undefined && !/^[^\s"*,]+$/.test(expected)) {
      throw new BucketError({ kind: "precondition" }, `"${expected}" is not a version.`);
    }
    const command = new this.#sdk.PutObjectCommand({
      ...this.#target(name),
      Body: withTrailer(body),
      ContentType: "application/json",
      ...(expected === undefined ? { IfNoneMatch: "*" } : { IfMatch: this.#quotesTags ? `"${expected}"` : expected }),
    });
    const { ETag } = await request(CELL_LIMIT_MS, undefined, (sending) => this.#cells.send(command, sending));
    return bareTag(ETag);
  }

  async head(name: string): Promise<StoredHead | undefined> {
    const command = new this.#sdk.HeadObjectCommand(this.#target(name));
    return await unlessAbsent(async () => {
      const found = await request(SMALL_LIMIT_MS, undefined, (sending) => this.#client.send(command, sending));
      return { sizeBytes: found.ContentLength ?? 0, writer: found.Metadata?.["writer"] };
    });
  }

  async open(name: string, range: ByteRange, { signal }: RequestOptions): Promise<OpenedBlob | undefined> {
    const header = rangeHeader(range);
    const command = new this.#sdk.GetObjectCommand({
      ...this.#target(name),
      ...(header === undefined ? {} : { Range: header }),
      ...(range.version === undefined ? {} : { IfMatch: range.version }),
    });
    return await unlessAbsent(async () => {
      try {
        const found = await request(SMALL_LIMIT_MS, signal, (sending) => this.#client.send(command, sending));
        const body = found.Body as Readable;
        return { chunks: receive(body, found.ContentLength, (reason) => body.destroy(reason)), version: found.ETag };
      } catch (error) {
        if (!(error instanceof BucketError) || statusOf(error.cause) !== 416) throw error;
        return { chunks: receiveNothing(), version: undefined };
      }
    });
  }

  async put(name: string, body: Uint8Array, { writer, ifAbsent, signal }: PutOptions): Promise<void> {
    const command = new this.#sdk.PutObjectCommand({
      ...this.#target(name),
      Body: body,
      Metadata: { writer },
      ...(ifAbsent ? { IfNoneMatch: "*" } : {}),
    });
    await request(PART_LIMIT_MS, signal, (sending) => this.#client.send(command, sending));
  }

  async beginUpload(name: string, options: UploadOptions): Promise<LargeUpload> {
    const command = new this.#sdk.CreateMultipartUploadCommand({
      ...this.#target(name),
      Metadata: { writer: options.writer },
    });
    const { UploadId } = await request(SMALL_LIMIT_MS, options.signal, (sending) =>
      this.#client.send(command, sending),
    );
    if (UploadId === undefined) throw new BucketError({ kind: "unclear", reached: true }, "no upload was named.");
    return new S3Upload({
      sdk: this.#sdk,
      client: this.#client,
      target: { ...this.#target(name), UploadId },
      options,
      isDone: async () => (await this.head(name))?.writer === options.writer,
    });
  }

  async listPage({ prefix, byFolder, pageToken }: ListRequest): Promise<ListPage> {
    const command = new this.#sdk.ListObjectsV2Command({
      Bucket: this.#bucket,
      Prefix: prefix,
      ...(byFolder ? { Delimiter: "/" } : {}),
      ...(pageToken === undefined ? {} : { ContinuationToken: pageToken }),
    });
    const page = await request(SMALL_LIMIT_MS, undefined, (sending) => this.#client.send(command, sending));
    return {
      objects: (page.Contents ?? []).map(({ Key = "", Size = 0, ETag = "" }) => ({
        name: Key,
        sizeBytes: Size,
        mark: ETag,
      })),
      folders: (page.CommonPrefixes ?? []).map(({ Prefix = "" }) => Prefix),
      nextPageToken: page.IsTruncated === true ? page.NextContinuationToken : undefined,
    };
  }

  async delete(name: string): Promise<void> {
    const command = new this.#sdk.DeleteObjectCommand(this.#target(name));
    await unlessAbsent(() => request(SMALL_LIMIT_MS, undefined, (sending) => this.#client.send(command, sending)));
  }

  /** Detects how this server wants tags to be written. */
  async learn(probeName: string): Promise<void> {
    const version = await this.putCell(probeName, undefined, Buffer.from("1"));
    this.#quotesTags = await this.#isAccepted(probeName, version);
    await this.delete(probeName);
  }

  async #isAccepted(probeName: string, version: string): Promise<boolean> {
    try {
      await this.putCell(probeName, version, Buffer.from("2"));
      return true;
    } catch (error) {
      // The probe of the store finds any other problem.
      return !hasFailed(error, "precondition");
    }
  }

  #target(name: string): { readonly Bucket: string; readonly Key: string } {
    return { Bucket: this.#bucket, Key: name };
  }
}

/** The tag without quotation marks. Without a tag the write may exist, but cannot be named. */
function bareTag(tag: string | undefined): string {
  const bare = tag?.replace(/^"(.*)"$/, "$1");
  if (bare === undefined || bare === "") {
    throw new BucketError({ kind: "unclear", reached: true }, "the store gave no ETag.");
  }
  return bare;
}

const NONCE_BYTES = 8;
const TRAILER = /\n[ \t]{64}$/;
const TRAILER_CHARACTERS = 65;

/**
 * The version of an S3 object is usually the checksum of its bytes, so a cell that returns to an earlier body would
 * return to its earlier version. Each write therefore ends in a random line of 64 spaces and tabs, which JSON readers
 * ignore.
 */
function withTrailer(body: Uint8Array): Buffer {
  let trailer = "\n";
  for (const byte of randomBytes(NONCE_BYTES)) {
    for (let bit = 0; bit < 8; bit++) trailer += (byte >> bit) & 1 ? "\t" : " ";
  }
  return Buffer.concat([body, Buffer.from(trailer)]);
}

/** The cell's own body. An object without the line was written by someone else, and is used unchanged. */
function withoutTrailer(stored: Uint8Array): Uint8Array {
  const bodyBytes = stored.byteLength - TRAILER_CHARACTERS;
  if (bodyBytes < 0) return stored;
  return TRAILER.test(Buffer.from(stored.subarray(bodyBytes)).toString("latin1"))
    ? stored.subarray(0, bodyBytes)
    : stored;
}
