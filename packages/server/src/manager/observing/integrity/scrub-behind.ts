import type { ManagerContext } from "../../context.ts";

/** A look at one small record of the store. */
const LOOK_MS = 10 * 60_000;

/** Scrubs the store by itself when it is due, if the server is set so. Gives a function that stops it. */
export function scrubBehind(context: ManagerContext, lookMs = LOOK_MS): () => void {
  const { durable, scrub } = context.options;
  if (durable.integrity === undefined || scrub?.everyMs === undefined) return () => {};
  const look = (): void => context.behind("scrub of the store", context.integrity.runIfDue());
  const timer = setInterval(look, Math.min(lookMs, scrub.everyMs));
  timer.unref();
  return () => clearInterval(timer);
}
