import type { Io } from "./io.ts";

/** Ctrl-C reaches the whole process group, and npm passes its own copy on: what comes this close is the same request. */
const SAME_REQUEST_MS = 200;
const INTERRUPTED = 130;

/** While things are being set up there is nothing to save; exiting ends the programs that set-up runs. */
export function exitOnSignal(io: Pick<Io, "onStopSignal" | "exit">): () => void {
  return io.onStopSignal(() => io.exit(INTERRUPTED));
}

/** Waits until the server has ended. The first signal drains it; a second one ends the process at once. */
export async function untilStopped(
  server: { readonly closed: Promise<void>; drain(): Promise<void> },
  io: Pick<Io, "onStopSignal" | "stderr" | "exit">,
): Promise<number> {
  const drained = Promise.withResolvers<void>();
  let firstSignalMs: number | undefined;
  const stopListening = io.onStopSignal((signal) => {
    const nowMs = performance.now();
    if (firstSignalMs === undefined) {
      firstSignalMs = nowMs;
      io.stderr(`${signal}: saving sandboxes and stopping; once more to stop at once\n`);
      server.drain().then(drained.resolve, drained.reject);
    } else if (nowMs - firstSignalMs > SAME_REQUEST_MS) {
      io.exit(INTERRUPTED);
    }
  });
  try {
    await Promise.race([server.closed, drained.promise]);
    if (firstSignalMs !== undefined) await drained.promise;
    return 0;
  } finally {
    stopListening();
  }
}
