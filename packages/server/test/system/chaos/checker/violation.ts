/** The promises of a chaos run. */
export type Rule =
  /** An acknowledged number is missing although no fault allows it. */
  | "lost write"
  /** A number was written twice. */
  | "double execution"
  /** A number was written although the server had refused it, or by nobody's request. */
  | "unexplained write"
  /** A state came back that had been lost or overwritten, or an acknowledged save did not hold. */
  | "stale restore"
  /** Two servers executed in the same sandbox at once. */
  | "two owners"
  /** A snapshot does not hold what it held when it was acknowledged. */
  | "wrong snapshot"
  /** Memory and files of one saved state come from different moments. */
  | "torn state"
  /** A sandbox that must exist does not. */
  | "missing sandbox"
  /** A deleted sandbox answered. */
  | "resurrected sandbox"
  /** A server gave an answer that no fault explains. */
  | "unexpected answer"
  /** A sandbox or server did not come back although all faults were over. */
  | "stuck"
  /** A server ended that nobody had stopped. */
  | "server crashed";

export interface Violation {
  readonly rule: Rule;
  readonly what: string;
}
