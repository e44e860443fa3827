import { SandboxerError } from "@sandboxer/protocol/errors";
import type { BucketApi } from "./bucket-api.ts";
import { BucketError, type RefusalReason } from "./bucket-error.ts";

const REFUSALS: Record<RefusalReason, string> = {
  credentials: "does not accept the credentials",
  rights: "does not allow it",
  bucket: "has no such bucket",
  region: "is in another region",
  request: "refuses the request",
  space: "has no space left",
};

/** A bucket's failure in the terms of the store's contract. Errors that are not its own pass unchanged. */
export function asStoreError(thrown: unknown, api: BucketApi, what: string): unknown {
  if (!(thrown instanceof BucketError)) return thrown;
  const { failure, message } = thrown;
  const said = `The store ${api.address}`;
  if (failure.kind === "refused") {
    return new SandboxerError(
      failure.reason === "space" ? "no_space" : "store_unavailable",
      `${said} ${REFUSALS[failure.reason]} (${what}): ${message}`,
      { cause: thrown, hint: api.remedies[failure.reason] },
    );
  }
  if (failure.kind === "unclear" && !failure.reached) {
    return new SandboxerError("store_unavailable", `${said} cannot be reached (${what}): ${message}`, {
      cause: thrown,
      hint: "Check the endpoint in the store's address, and that this machine may connect to it.",
    });
  }
  return new SandboxerError("store_unavailable", `${said} failed (${what}): ${message}`, { cause: thrown });
}
