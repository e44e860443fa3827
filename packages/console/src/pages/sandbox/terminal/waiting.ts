import { effect } from "@preact/signals";
import { refreshSandbox, sandboxes } from "../../../live/sandboxes.ts";

/** No event of this server says where it will run, so it is polled: often at first, because a move is quick. */
const LOOK_MS = 400;
const LOOK_SELDOM_MS = 3_000;
const OFTEN = 40;

export function pauseMs(milliseconds: number, signal: AbortSignal): Promise<void> {
  return new Promise((resolve) => {
    const timer = setTimeout(resolve, milliseconds);
    const over = (): void => {
      clearTimeout(timer);
      resolve();
    };
    if (signal.aborted) over();
    else signal.addEventListener("abort", over, { once: true });
  });
}

/** Resolves when the sandbox runs, anywhere, or the signal aborts. */
export async function whenRunning(id: string, signal: AbortSignal): Promise<void> {
  await refreshSandbox(id);
  for (let looks = 0; !signal.aborted && !runs(id); looks += 1) {
    const change = new AbortController();
    const stop = effect(() => {
      if (runs(id)) change.abort();
    });
    await pauseMs(looks < OFTEN ? LOOK_MS : LOOK_SELDOM_MS, AbortSignal.any([signal, change.signal]));
    stop();
    if (!runs(id) && document.visibilityState === "visible") await refreshSandbox(id);
  }
}

function runs(id: string): boolean {
  return sandboxes.value.get(id)?.state === "running";
}
