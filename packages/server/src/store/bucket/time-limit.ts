import { BucketError } from "./bucket-error.ts";

/** A request before or after the renewal of a lease: a slow answer is as useless as none. */
export const CELL_LIMIT_MS = 5_000;

export const SMALL_LIMIT_MS = 20_000;

/** A part of 16 MiB, at 140 kB/s. */
export const PART_LIMIT_MS = 120_000;

/**
 * Runs a request with a signal that fires after the time limit, or with the caller's. It ends then, even if the request
 * ignores the signal.
 */
export async function withinTime<T>(
  limitMs: number,
  signal: AbortSignal | undefined,
  request: (signal: AbortSignal) => Promise<T>,
): Promise<T> {
  const stop = new AbortController();
  const overtime = new BucketError({ kind: "unclear", reached: false }, `no answer within ${limitMs / 1000} s.`);
  const stopped = Promise.withResolvers<never>();
  const end = (reason: unknown): void => {
    stopped.reject(reason);
    stop.abort(reason);
  };
  const onAbort = (): void => end(signal?.reason);
  signal?.throwIfAborted();
  signal?.addEventListener("abort", onAbort, { once: true });
  const timer = setTimeout(() => end(overtime), limitMs);
  try {
    return await Promise.race([request(stop.signal), stopped.promise]);
  } finally {
    clearTimeout(timer);
    signal?.removeEventListener("abort", onAbort);
  }
}
