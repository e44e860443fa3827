import type { Io } from "./io.ts";

/**
 * Ctrl-C reaches the whole process group, and npm passes on its own copy: signals this close together are one request.
 */
const SAME_REQUEST_MS = 200;
export const INTERRUPTED = 130;

/** A second Ctrl-C this long after the first is intended; copies of the first come sooner. */
const PERSON_REPEATS_MS = 1_000;
const HOW_TO_STOP_AT_ONCE = "press Ctrl-C again to stop at once and lose unsaved state";

/** During set-up there is nothing to save; exiting ends the set-up programs. */
export function exitOnSignal(io: Pick<Io, "onStopSignal" | "exit">): () => void {
  return io.onStopSignal(() => io.exit(INTERRUPTED));
}

/** Distinguishes a first request to stop from a repeated one. Returns a function that ends it. */
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

/**
 * Waits until the server has ended. Any request to stop drains it. Supervisors repeat signals, signal whole groups and
 * kill parents, so none of that shortens a drain: only a person does, with a second Ctrl-C.
 */
export async function untilStopped(
  server: { readonly closed: Promise<void>; drain(): Promise<void> },
  io: Pick<Io, "onStopSignal" | "outliveParent" | "stderr" | "exit">,
): Promise<number> {
  const drained = Promise.withResolvers<void>();
  let draining = false;
  let interruptedMs: number | undefined;
  const onSignal = (signal: string): void => {
    if (draining) io.stderr(`${signal}: still saving sandboxes\n`);
    else {
      draining = true;
      io.outliveParent();
      io.stderr(`${signal}: saving sandboxes and stopping${signal === "SIGINT" ? `; ${HOW_TO_STOP_AT_ONCE}` : ""}\n`);
      server.drain().then(drained.resolve, drained.reject);
    }
    if (signal !== "SIGINT") return;
    const nowMs = performance.now();
    interruptedMs ??= nowMs;
    if (nowMs - interruptedMs >= PERSON_REPEATS_MS) io.exit(INTERRUPTED);
  };
  const stopListening = io.onStopSignal(onSignal, { hangUp: true });
  try {
    await Promise.race([server.closed, drained.promise]);
    if (draining) await drained.promise;
    return 0;
  } finally {
    stopListening();
  }
}
