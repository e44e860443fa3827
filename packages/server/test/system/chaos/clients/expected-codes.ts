/** There is no such sandbox, or no longer. Whether that may be is for the checker to say. */
export const MISSING_CODES: ReadonlySet<string> = new Set(["sandbox_not_found", "sandbox_destroyed"]);

/** Whether servers may answer so under faults to a request that is in order. Anything else is a defect. */
export function isExpected(kind: string, code: string): boolean {
  // The server that it was to go to is dead.
  return EXPECTED_CODES.has(code) || (kind === "handoff" && code === "bad_request");
}

const EXPECTED_CODES: ReadonlySet<string> = new Set([
  ...MISSING_CODES,
  "backend_unavailable",
  "checkpoint_failed",
  "draining",
  "lease_held",
  "lease_lost",
  "no_space",
  "sandbox_failed",
  "sandbox_in_use",
  "server_unreachable",
  "stale_epoch",
  "starting",
  "store_unavailable",
  "timeout",
  "wrong_state",
]);
