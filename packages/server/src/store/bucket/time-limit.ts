import { BucketError } from "./bucket-error.ts";

/** A request that leads or follows the renewal of a lease: a slow answer is worth no more than none. */
export const CELL_LIMIT_MS = 5_000;

export const SMALL_LIMIT_MS = 20_000;

/** A part of 16 MiB, at 140 kB/s. */
export const PART_LIMIT_MS = 120_000;

/**
 * Runs a request with a signal that comes when the time is over, or when the caller's does. It ends then, whether or not
 * the request minds the signal.
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
