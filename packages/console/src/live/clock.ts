import { signal } from "@preact/signals";

/** The time for all displayed ages: one timer for the whole page. */
export const nowMs = signal(Date.now());

setInterval(() => {
  if (document.visibilityState === "visible") nowMs.value = Date.now();
}, 1_000);
