import type { S3Client } from "@aws-sdk/client-s3";
import type { LargeUpload, UploadOptions } from "../bucket/bucket-api.ts";
import { BucketError, hasFailed } from "../bucket/bucket-error.ts";
import { PART_LIMIT_MS, SMALL_LIMIT_MS } from "../bucket/time-limit.ts";
import { request, type S3Sdk } from "./s3-request.ts";

const PARTS_AT_ONCE = 3;

export interface MultipartUpload {
  readonly sdk: S3Sdk;
  readonly client: S3Client;
  readonly target: { readonly Bucket: string; readonly Key: string; readonly UploadId: string };
  readonly options: UploadOptions;
  /** Whether the existing object was written by this upload. */
  readonly isDone: () => Promise<boolean>;
}

/** A multipart upload with several parts in flight. */
export class S3Upload implements LargeUpload {
  readonly #upload: MultipartUpload;
  readonly #stop = new AbortController();
  readonly #onItsWay = new Set<Promise<void>>();
  readonly #tags: string[] = [];
  #failure: unknown;

  constructor(upload: MultipartUpload) {
    this.#upload = upload;
  }

  async add(part: Uint8Array): Promise<void> {
    const number = this.#tags.push("");
    const sending = this.#send(number, part)
      .catch((error: unknown) => {
        this.#failure ??= error;
      })
      .finally(() => this.#onItsWay.delete(sending));
    this.#onItsWay.add(sending);
    if (this.#onItsWay.size >= PARTS_AT_ONCE) await Promise.race(this.#onItsWay);
    this.#throwFailure();
  }

  async finish(): Promise<void> {
    await Promise.all(this.#onItsWay);
    this.#throwFailure();
    await this.#upload.options.retry(async () => {
      try {
        await this.#complete(this.#upload.options.ifAbsent);
      } catch (error) {
        // A missing upload was finished by an attempt whose answer was lost.
        if (!hasFailed(error, "absent") || !(await this.#upload.isDone())) throw asUnexpected(error);
      }
    });
  }

  async abort(): Promise<void> {
    this.#stop.abort(new Error("the upload was cancelled"));
    // A part that arrives after the upload was removed would stay, and be paid for.
    await Promise.all(this.#onItsWay);
    const { sdk, client, target, options } = this.#upload;
    await options.retry(async () => {
      try {
        const command = new sdk.AbortMultipartUploadCommand(target);
        await request(SMALL_LIMIT_MS, undefined, (sending) => client.send(command, sending));
      } catch (error) {
        if (!hasFailed(error, "absent")) throw error;
      }
    });
  }

  async #send(number: number, part: Uint8Array): Promise<void> {
    const { sdk, client, target, options } = this.#upload;
    const signals = options.signal === undefined ? [this.#stop.signal] : [this.#stop.signal, options.signal];
    await options.retry(async () => {
      const command = new sdk.UploadPartCommand({ ...target, PartNumber: number, Body: part });
      const signal = AbortSignal.any(signals);
      const { ETag } = await request(PART_LIMIT_MS, signal, (sending) => client.send(command, sending));
      if (ETag === undefined)
        throw new BucketError({ kind: "unclear", reached: true }, "a part came back without ETag.");
      this.#tags[number - 1] = ETag;
    });
  }

  async #complete(ifAbsent: boolean): Promise<void> {
    const { sdk, client, target, options } = this.#upload;
    const command = new sdk.CompleteMultipartUploadCommand({
      ...target,
      MultipartUpload: { Parts: this.#tags.map((ETag, index) => ({ ETag, PartNumber: index + 1 })) },
      ...(ifAbsent ? { IfNoneMatch: "*" } : {}),
    });
    try {
      await request(PART_LIMIT_MS, options.signal, (sending) => client.send(command, sending));
    } catch (error) {
      // Some stores support this condition for small objects only. The caller has checked before.
      if (!ifAbsent || !(error instanceof BucketError) || !isNotImplemented(error)) throw error;
      await this.#complete(false);
    }
  }

  #throwFailure(): void {
    if (this.#failure !== undefined) throw this.#failure;
  }
}

function isNotImplemented({ failure, cause }: BucketError): boolean {
  return failure.kind === "refused" && (cause as Error | undefined)?.name === "NotImplemented";
}

/** No object can be missing here: the store has lost the upload. */
function asUnexpected(error: unknown): unknown {
  if (!hasFailed(error, "absent")) return error;
  return new BucketError(
    { kind: "refused", reason: "request" },
    `the upload no longer exists: ${error.message}`,
    error,
  );
}
