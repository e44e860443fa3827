import type { Io } from "./io.ts";

/** Ctrl-C reaches the whole process group, and npm passes its own copy on: what comes this close is the same request. */
const SAME_REQUEST_MS = 200;
export const INTERRUPTED = 130;

/** While things are being set up there is nothing to save; exiting ends the programs that set-up runs. */
export function exitOnSignal(io: Pick<Io, "onStopSignal" | "exit">): () => void {
  return io.onStopSignal(() => io.exit(INTERRUPTED));
}

/** Tells a first request to stop from one that a person repeats. Gives the function that ends it. */
export function onStopRequests(
  io: Pick<Io, "onStopSignal">,
  onFirst: (signal: string) => void,
  onRepeated: (signal: string) => void,
): () => void {
  let firstMs: number | undefined;
  return io.onStopSignal((signal) => {
    const nowMs = performance.now();
    if (firstMs === undefined) {
      firstMs = nowMs;
      onFirst(signal);
    } else if (nowMs - firstMs > SAME_REQUEST_MS) onRepeated(signal);
  });
}

/** Waits until the server has ended. The first signal drains it; a second one ends the process at once. */
export async function untilStopped(
  server: { readonly closed: Promise<void>; drain(): Promise<void> },
  io: Pick<Io, "onStopSignal" | "stderr" | "exit">,
): Promise<number> {
  const drained = Promise.withResolvers<void>();
  let draining = false;
  const drain = (signal: string): void => {
    draining = true;
    io.stderr(`${signal}: saving sandboxes and stopping; once more to stop at once\n`);
    server.drain().then(drained.resolve, drained.reject);
  };
  const stopListening = onStopRequests(io, drain, () => io.exit(INTERRUPTED));
  try {
    await Promise.race([server.closed, drained.promise]);
    if (draining) await drained.promise;
    return 0;
  } finally {
    stopListening();
  }
}
