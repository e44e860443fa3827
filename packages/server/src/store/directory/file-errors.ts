import { isErrno, SandboxerError } from "@sandboxer/protocol/errors";

const NO_SPACE = new Set(["ENOSPC", "EDQUOT", "EFBIG"]);

/** What the file system said, in the terms of the store's contract. Errors that are not its own pass unchanged. */
export function asStoreError(thrown: unknown, what: string): unknown {
  if (thrown instanceof SandboxerError || !isErrno(thrown)) return thrown;
  if (thrown.code !== undefined && NO_SPACE.has(thrown.code)) {
    return new SandboxerError("no_space", `No space left in the store for ${what}.`, { cause: thrown });
  }
  if (thrown.syscall === undefined) return thrown;
  return new SandboxerError("store_unavailable", `The store failed at ${what}: ${thrown.message}.`, { cause: thrown });
}

export function hasCode(thrown: unknown, ...codes: readonly string[]): boolean {
  return isErrno(thrown) && thrown.code !== undefined && codes.includes(thrown.code);
}
