import type { ErrorCode, SandboxerError } from "@sandboxer/protocol/errors";
import { isSandboxerError, neverSent } from "./errors.ts";
import { pause } from "./abort.ts";

export interface RetryOptions {
  /** The maximum number of attempts; 1 turns retries off. */
  readonly attempts?: number;
  /** The longest wait before the second attempt; it doubles with each further one. */
  readonly firstDelayMs?: number;
  readonly maxDelayMs?: number;
}

/** Failures that may be temporary. Others are retryable too, but only after a person has acted. */
const PASSING: ReadonlySet<ErrorCode> = new Set([
  "server_unreachable",
  "backend_unavailable",
  "store_unavailable",
  "starting",
  "draining",
  "timeout",
  "rate_limited",
]);

/** After these, the server may have carried out the request. */
const UNCERTAIN: ReadonlySet<ErrorCode> = new Set(["server_unreachable", "timeout"]);

export interface Backoff {
  readonly attempts: number;
  /** Full jitter: clients that failed together do not come back together. */
  readonly delayMs: (failures: number) => number;
}

export function backoff({ attempts = 5, firstDelayMs = 100, maxDelayMs = 5_000 }: RetryOptions = {}): Backoff {
  return {
    attempts,
    delayMs: (failures) => Math.random() * Math.min(maxDelayMs, firstDelayMs * 2 ** (failures - 1)),
  };
}

/**
 * Retries a call after a temporary failure. With `repeatable` false, only after a failure that says that nothing was
 * done. `attempt` gets the number of earlier attempts with an unknown outcome.
 */
export async function retrying<Result>(
  attempt: (uncertain: number) => Promise<Result>,
  { attempts, delayMs }: Backoff,
  { repeatable, signal }: { repeatable: boolean; signal: AbortSignal | undefined },
): Promise<Result> {
  let uncertain = 0;
  for (let failures = 1; ; failures += 1) {
    try {
      return await attempt(uncertain);
    } catch (error) {
      if (failures >= attempts || !isSandboxerError(error) || !mayRepeat(error, repeatable)) throw error;
      if (UNCERTAIN.has(error.code) && !neverSent(error)) uncertain += 1;
      await pause(Math.max(delayMs(failures), retryAfterMs(error)), signal);
    }
  }
}

function mayRepeat(error: SandboxerError, repeatable: boolean): boolean {
  if (!PASSING.has(error.code)) return false;
  return repeatable || !UNCERTAIN.has(error.code) || neverSent(error);
}

function retryAfterMs({ details }: SandboxerError): number {
  const seconds = details["retry_after_seconds"];
  return typeof seconds === "number" ? Math.min(seconds, 60) * 1000 : 0;
}
