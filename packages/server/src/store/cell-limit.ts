import type { SandboxerError } from "@sandboxer/protocol/errors";
import { recordDamaged } from "../support/record-damage.ts";

/** Far more than any cell needs: a larger one was not written by a server, and is not read into memory. */
export const LARGEST_CELL_BYTES = 32 * 1024 * 1024;

export function cellTooLarge(object: string): SandboxerError {
  return recordDamaged(object, `it is larger than ${LARGEST_CELL_BYTES} bytes.`);
}
