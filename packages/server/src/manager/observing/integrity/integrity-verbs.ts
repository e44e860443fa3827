import type { IntegrityReport, ScrubStatus } from "@sandboxer/protocol";
import type { ObservingContext } from "../../room-contexts.ts";
import type { VerbOptions } from "../operations/tracked.ts";
import { type IntegrityFigures, Scrubber } from "./scrubber.ts";
import { verifySandbox, verifySnapshot } from "./verify.ts";

/** How often a server looks at the one small record that says when the store was scrubbed. */
const LOOK_MS = 10 * 60_000;

/** Whether what is stored is still what was saved. */
export class IntegrityVerbs {
  readonly #context: ObservingContext;
  readonly #scrubber: Scrubber;
  readonly #stopLooking: () => void;

  constructor(context: ObservingContext) {
    this.#context = context;
    this.#scrubber = new Scrubber(context, context.options.scrub);
    this.#stopLooking = scrubWhenDue(context, this.#scrubber);
  }

  get figures(): IntegrityFigures {
    return this.#scrubber.figures;
  }

  verifySnapshot(idOrName: string, options?: VerbOptions): Promise<IntegrityReport> {
    return verifySnapshot(this.#context, this.#scrubber, idOrName, options);
  }

  verifySandbox(sandboxId: string, checkpoint: string | undefined, options?: VerbOptions): Promise<IntegrityReport> {
    return verifySandbox(this.#context, this.#scrubber, sandboxId, checkpoint, options);
  }

  /** Looks at everything that is stored, one at a time; `rateMb` null or 0: without a limit. */
  scrub(rateMb: number | null | undefined, options?: VerbOptions): Promise<IntegrityReport> {
    return this.#scrubber.run(rateMb, options);
  }

  status(): Promise<ScrubStatus> {
    return this.#scrubber.status();
  }

  /** Scrubs if the server is set so and none of the store's servers has for long enough. */
  runIfDue(): Promise<void> {
    return this.#scrubber.runIfDue();
  }

  stopScrub(): void {
    this.#scrubber.stop();
  }

  /** For good: the server ends. */
  close(): void {
    this.#stopLooking();
    this.#context.draining = true;
    this.#scrubber.stop();
  }
}

/** Scrubs the store by itself, if the server is set so. Gives a function that stops it. */
function scrubWhenDue(context: ObservingContext, scrubber: Scrubber): () => void {
  const { durable, scrub } = context.options;
  if (durable.integrity === undefined || scrub?.everyMs === undefined) return () => {};
  const look = (): void => context.inBackground("scrub of the store", scrubber.runIfDue());
  const timer = setInterval(look, Math.min(LOOK_MS, scrub.everyMs));
  timer.unref();
  return () => clearInterval(timer);
}
