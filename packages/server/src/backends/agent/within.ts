import { type RequestOptions } from "./agent-connection.ts";

/** Waits no longer than the caller does; `late` creates the error. */
export async function within(
  promise: Promise<void>,
  options: RequestOptions & { readonly late: Error },
): Promise<void> {
  const { timeoutMs, signal, late } = options;
  const over = Promise.withResolvers<never>();
  const timer = timeoutMs === undefined ? undefined : setTimeout(() => over.reject(late), timeoutMs);
  const onAbort = (): void => over.reject(signal?.reason as Error);
  signal?.addEventListener("abort", onAbort, { once: true });
  try {
    signal?.throwIfAborted();
    await Promise.race([promise, over.promise]);
  } finally {
    clearTimeout(timer);
    signal?.removeEventListener("abort", onAbort);
  }
}
