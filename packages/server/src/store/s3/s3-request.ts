import { withinTime } from "../bucket/time-limit.ts";
import { asBucketError } from "./s3-errors.ts";

export type S3Sdk = typeof import("@aws-sdk/client-s3");

export interface SendOptions {
  readonly abortSignal: AbortSignal;
}

/** One request with a time limit, whose failure is converted to a bucket error. */
export async function request<T>(
  limitMs: number,
  signal: AbortSignal | undefined,
  send: (options: SendOptions) => Promise<T>,
): Promise<T> {
  try {
    return await withinTime(limitMs, signal, (abortSignal) => send({ abortSignal }));
  } catch (error) {
    signal?.throwIfAborted();
    throw asBucketError(error);
  }
}
