/** Why a store will not do what it was asked, however often it is asked. */
export type RefusalReason = "credentials" | "rights" | "bucket" | "region" | "request" | "space";

export type BucketFailure =
  /** There is no such object. */
  | { readonly kind: "absent" }
  /** The condition did not hold: nothing was written. */
  | { readonly kind: "precondition" }
  /** Nothing was done, and asking again will not help. */
  | { readonly kind: "refused"; readonly reason: RefusalReason }
  /** It may or may not have been done: no answer, or one that says to ask again. */
  | { readonly kind: "unclear"; readonly reached: boolean };

/** The failure of one request to a bucket. It does not leave the store. */
export class BucketError extends Error {
  readonly failure: BucketFailure;

  constructor(failure: BucketFailure, message: string, cause?: unknown) {
    super(message, { cause });
    this.name = "BucketError";
    this.failure = failure;
  }
}

export function hasFailed(thrown: unknown, ...kinds: readonly BucketFailure["kind"][]): thrown is BucketError {
  return thrown instanceof BucketError && kinds.includes(thrown.failure.kind);
}

/** For requests that need no object: only the bucket itself can be absent. */
export function asMissingBucket(thrown: unknown): unknown {
  if (!hasFailed(thrown, "absent")) return thrown;
  return new BucketError({ kind: "refused", reason: "bucket" }, thrown.message, thrown);
}
