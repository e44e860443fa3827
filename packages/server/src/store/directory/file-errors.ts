import { isErrno, SandboxerError } from "@sandboxer/protocol/errors";
import { recordDamaged } from "../../support/record-damage.ts";

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

/** What is wrong with one file where the others can be read: a bad sector, another's rights, a folder in its place. */
const OF_ONE_FILE = new Set(["EIO", "EACCES", "EPERM", "EISDIR", "ENOTDIR", "ELOOP", "EBADMSG", "EUCLEAN"]);

/** For a record that is there and cannot be read. Whether the store is there is for others to say. */
export function asUnreadable(thrown: unknown, path: string): unknown {
  if (!isErrno(thrown) || !OF_ONE_FILE.has(thrown.code)) return thrown;
  return recordDamaged(thrown.path ?? path, `${thrown.message}.`, thrown);
}
