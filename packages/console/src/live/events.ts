import { signal } from "@preact/signals";
import type { EventRecord } from "@sandboxer/client";
import { asError, client } from "../session.ts";

type Listener = (event: EventRecord) => void;

const listeners = new Set<Listener>();
const RETRY_MS = 2_000;

/** Whether events of the server arrive live. */
export const connected = signal(false);

/** Subscribes to all events of the server from now on. Returns a function that ends it. */
export function onEvent(listener: Listener): () => void {
  listeners.add(listener);
  return () => listeners.delete(listener);
}

/**
 * One stream for the whole page, while the page is visible: a browser has six connections to a server for all of its
 * tabs. It is restored automatically without gaps; `resync` is called when that is not guaranteed.
 */
export async function followEvents(ended: AbortSignal, resync: () => void): Promise<void> {
  let cursor: string | undefined;
  const onConnection = (is: boolean, at: string | undefined): void => {
    connected.value = is;
    cursor = at;
  };
  let stream = new AbortController();
  const look = (): void => {
    if (document.visibilityState === "hidden") stream.abort();
  };
  document.addEventListener("visibilitychange", look, { signal: ended });
  while (!ended.aborted) {
    await seen(ended);
    stream = new AbortController();
    try {
      const stop = AbortSignal.any([stream.signal, ended]);
      for await (const event of client.events({ signal: stop, cursor, onConnection })) {
        for (const listener of listeners) listener(event);
      }
    } catch (thrown) {
      if (ended.aborted) return;
      if (!stream.signal.aborted) {
        if (asError(thrown).code === "unauthorized") return;
        await new Promise((resolve) => setTimeout(resolve, RETRY_MS));
      }
      resync();
    }
  }
}

/** Resolves when the page is visible, or no longer needed. */
async function seen(ended: AbortSignal): Promise<void> {
  if (document.visibilityState === "visible" || ended.aborted) return;
  const { promise, resolve } = Promise.withResolvers<void>();
  const heard = new AbortController();
  document.addEventListener("visibilitychange", () => resolve(), { signal: heard.signal });
  ended.addEventListener("abort", () => resolve(), { signal: heard.signal });
  await promise;
  heard.abort();
}
