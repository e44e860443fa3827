/** There is no such sandbox, or no longer. Whether that may be is for the checker to say. */
export const MISSING_CODES: ReadonlySet<string> = new Set(["sandbox_not_found", "sandbox_destroyed"]);

/** What servers may answer under faults to requests that are in order. Anything else is a defect. */
export const EXPECTED_CODES: ReadonlySet<string> = new Set([
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
