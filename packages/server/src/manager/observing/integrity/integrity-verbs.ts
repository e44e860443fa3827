import type { IntegrityReport } from "@sandboxer/protocol";
import type { ObservingContext } from "../../room-contexts.ts";
import type { VerbOptions } from "../operations/tracked.ts";
import { Scrubber } from "./scrubber.ts";
import { verifySandbox, verifySnapshot } from "./verify.ts";

/** How often a server reads the small record that says when the store was last scrubbed. */
const LOOK_MS = 10 * 60_000;

/** Checks whether the stored data is what was saved. */
export class IntegrityVerbs extends Scrubber {
  readonly #context: ObservingContext;
  readonly #stopLooking: () => void;

  constructor(context: ObservingContext) {
    super(context, context.options.scrub);
    this.#context = context;
    this.#stopLooking = scrubWhenDue(context, this);
  }

  verifySnapshot(idOrName: string, options?: VerbOptions): Promise<IntegrityReport> {
    return verifySnapshot(this.#context, this, idOrName, options);
  }

  verifySandbox(sandboxId: string, checkpoint: string | undefined, options?: VerbOptions): Promise<IntegrityReport> {
    return verifySandbox(this.#context, this, sandboxId, checkpoint, options);
  }

  /** Stops everything: the server ends. */
  close(): void {
    this.#stopLooking();
    this.#context.draining = true;
    this.stop();
  }
}

/** Scrubs the store automatically if configured. Returns a function that stops it. */
function scrubWhenDue(context: ObservingContext, scrubber: Scrubber): () => void {
  const { durable, scrub } = context.options;
  if (durable.integrity === undefined || scrub?.everyMs === undefined) return () => {};
  const look = (): void => context.inBackground("scrub of the store", scrubber.runIfDue());
  const timer = setInterval(look, Math.min(LOOK_MS, scrub.everyMs));
  timer.unref();
  return () => clearInterval(timer);
}
