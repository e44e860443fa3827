import type { Clock } from "../../support/clock.ts";
import type { Remedies } from "./bucket-error.ts";

/**
 * The requests that a kind of bucket must offer to BucketStore, each tried once and with its own time limit. Names are
 * full names in the bucket. Every failure is a BucketError, or the reason of the signal.
 */
export interface BucketApi {
  /** For people and logs, without secrets. */
  readonly address: string;

  readonly remedies: Remedies;

  /** Undefined if there is none. */
  getCell(name: string): Promise<StoredCell | undefined>;

  /** Creates it if `expected` is undefined. Returns the new version; `precondition` if another version exists. */
  putCell(name: string, expected: string | undefined, body: Uint8Array): Promise<string>;

  /** Undefined if there is none. */
  head(name: string): Promise<StoredHead | undefined>;

  /** Undefined if there is none. A range that begins beyond the end is empty. */
  open(name: string, range: ByteRange, options: RequestOptions): Promise<OpenedBlob | undefined>;

  put(name: string, body: Uint8Array, options: PutOptions): Promise<void>;

  /** Begins a blob of many parts that becomes visible when the upload is finished, and not before. */
  beginUpload(name: string, options: UploadOptions): Promise<LargeUpload>;

  listPage(request: ListRequest): Promise<ListPage>;

  /** Removing a missing object is fine. */
  delete(name: string): Promise<void>;

  /** Detects peculiarities of this server that the requests above must take into account. */
  learn?(probeName: string): Promise<void>;
}

export interface StoredCell {
  /** Undefined: it is larger than any cell, and was not read. */
  readonly body: Uint8Array | undefined;
  readonly version: string;
}

export interface StoredHead {
  readonly sizeBytes: number;
  /** The mark that {@link PutOptions.writer} left. */
  readonly writer: string | undefined;
}

export interface ByteRange {
  readonly start: number;
  /** Exclusive. */
  readonly end: number | undefined;
  /** The version of an earlier open: another version is a `precondition` error. */
  readonly version?: string;
}

export interface OpenedBlob {
  readonly chunks: AsyncIterable<Uint8Array>;
  readonly version: string | undefined;
}

export interface RequestOptions {
  readonly signal: AbortSignal | undefined;
}

export interface PutOptions extends RequestOptions {
  /** Stored with the blob, so that a write whose answer was lost can be recognised. */
  readonly writer: string;
  readonly ifAbsent: boolean;
}

export interface UploadOptions extends PutOptions {
  /** Tries a request again while its failures are unclear. */
  readonly retry: Retry;
}

export type Retry = <T>(action: () => Promise<T>) => Promise<T>;

/** All parts except the last have the same size. The upload retries by itself. */
export interface LargeUpload {
  /** The upload owns the bytes from now on. Resolves when there is room for another part. */
  add(part: Uint8Array, last: boolean): Promise<void>;
  finish(): Promise<void>;
  /** Removes all parts. */
  abort(): Promise<void>;
}

export interface BucketStoreOptions {
  readonly clock?: Clock;
  /**
   * The part size of blobs that are too large for one request; a multiple of 256 KiB, as GCS demands; S3 requires at
   * least 5 MiB.
   */
  readonly partBytes?: number;
}

/** Large enough for 160 GB in the 10,000 parts that S3 allows. */
export const PART_BYTES = 16 * 1024 * 1024;

export interface ListRequest {
  readonly prefix: string;
  /** Whether names with a further `/` after the prefix are returned as folders. */
  readonly byFolder: boolean;
  readonly pageToken: string | undefined;
}

export interface ListPage {
  readonly objects: readonly {
    readonly name: string;
    readonly sizeBytes: number;
    /** Differs between any two contents of the name. */
    readonly mark: string;
  }[];
  /** Whole names, with their `/` at the end. */
  readonly folders: readonly string[];
  readonly nextPageToken: string | undefined;
}
