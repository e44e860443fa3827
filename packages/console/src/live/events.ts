import { signal } from "@preact/signals";
import type { EventRecord } from "@sandboxer/client";
import { asError, client } from "../session.ts";

type Listener = (event: EventRecord) => void;

const listeners = new Set<Listener>();
const RETRY_MS = 2_000;

/** Whether what happens on the server arrives as it happens. */
export const connected = signal(false);

/** Hears of everything that happens on the server from now on. Gives the function that ends it. */
export function onEvent(listener: Listener): () => void {
  listeners.add(listener);
  return () => listeners.delete(listener);
}

/** One stream for the whole page. It comes back by itself with nothing missed; `resync` is called when that cannot be promised. */
export async function followEvents(signal_: AbortSignal, resync: () => void): Promise<void> {
  let cursor: string | undefined;
  while (!signal_.aborted) {
    try {
      connected.value = true;
      for await (const event of client.events({ signal: signal_, cursor })) {
        cursor = event.cursor;
        for (const listener of listeners) listener(event);
      }
    } catch (thrown) {
      if (signal_.aborted) return;
      connected.value = false;
      if (asError(thrown).code === "unauthorized") return;
      await new Promise((resolve) => setTimeout(resolve, RETRY_MS));
      resync();
    }
  }
}
