/** Injected time, so that tests control it. */
export interface Clock {
  /** Milliseconds since the epoch: for names and records, never to decide about timeouts. */
  wallMs(): number;
  /** Monotonic milliseconds. */
  monotonicMs(): number;
  sleep(ms: number, signal?: AbortSignal): Promise<void>;
}

/** A longer timer would fire at once. */
const LONGEST_TIMER_MS = 2 ** 31 - 1;

export const systemClock: Clock = {
  wallMs: () => Date.now(),
  monotonicMs: () => performance.now(),
  sleep: (ms, signal) =>
    new Promise((resolve, reject) => {
      if (signal?.aborted) return reject(signal.reason as Error);
      let timer: NodeJS.Timeout;
      const onAbort = (): void => {
        clearTimeout(timer);
        reject(signal?.reason as Error);
      };
      const wait = (leftMs: number): void => {
        timer = setTimeout(
          () => {
            if (leftMs > LONGEST_TIMER_MS) return wait(leftMs - LONGEST_TIMER_MS);
            signal?.removeEventListener("abort", onAbort);
            resolve();
          },
          Math.min(leftMs, LONGEST_TIMER_MS),
        );
      };
      wait(ms);
      signal?.addEventListener("abort", onAbort, { once: true });
    }),
};
