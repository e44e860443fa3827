import { SandboxerError } from "@sandboxer/protocol/errors";

/** Why a store refuses a request permanently. */
export type RefusalReason = "credentials" | "rights" | "bucket" | "region" | "request" | "space";

/** Remedies for the operator, by reason. */
export type Remedies = Readonly<Record<RefusalReason, string>>;

/** Remedies that are the same for every kind of bucket. */
export const COMMON_REMEDIES = {
  bucket: "Create the bucket, or correct its name in the store's address.",
  request: "See docs/reference/stores.md for stores that are known to work.",
  space: "Free space in the store, or raise its quota.",
};

export type BucketFailure =
  /** There is no such object. */
  | { readonly kind: "absent" }
  /** The condition did not hold: nothing was written. */
  | { readonly kind: "precondition" }
  /** Nothing was done, and retrying will not help. */
  | { readonly kind: "refused"; readonly reason: RefusalReason }
  /** It may or may not have been done: no answer, or one that asks for a retry. */
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

/** For requests without an object: only the bucket itself can be missing. */
export function asMissingBucket(thrown: unknown): unknown {
  if (!hasFailed(thrown, "absent")) return thrown;
  return new BucketError({ kind: "refused", reason: "bucket" }, thrown.message, thrown);
}

/** Undefined for a missing object. */
export async function unlessAbsent<T>(request: () => Promise<T>): Promise<T | undefined> {
  try {
    return await request();
  } catch (error) {
    if (hasFailed(error, "absent")) return undefined;
    throw error;
  }
}

const REFUSALS: Record<RefusalReason, string> = {
  credentials: "does not accept the credentials",
  rights: "does not allow it",
  bucket: "has no such bucket",
  region: "is in another region",
  request: "refuses the request",
  space: "has no space left",
};

interface FailingBucket {
  readonly address: string;
  readonly remedies: Remedies;
}

/** Converts a bucket's failure to the errors of the store's contract. Other errors pass unchanged. */
export function asStoreError(thrown: unknown, bucket: FailingBucket, what: string): unknown {
  if (!(thrown instanceof BucketError)) return thrown;
  const { failure, message } = thrown;
  const said = `The store ${bucket.address}`;
  if (failure.kind === "refused") {
    return new SandboxerError(
      failure.reason === "space" ? "no_space" : "store_unavailable",
      `${said} ${REFUSALS[failure.reason]} (${what}): ${message}`,
      { cause: thrown, hint: bucket.remedies[failure.reason] },
    );
  }
  if (failure.kind === "unclear" && !failure.reached) {
    return new SandboxerError("store_unavailable", `${said} cannot be reached (${what}): ${message}`, {
      cause: thrown,
      hint: "Check the endpoint in the store's address and that this machine can connect to it.",
    });
  }
  return new SandboxerError("store_unavailable", `${said} failed (${what}): ${message}`, { cause: thrown });
}
