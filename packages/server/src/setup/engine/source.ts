import type { SetupContext } from "../context.ts";
import type { StepResult } from "../step.ts";

/** A runsc that was found or installed. `version` and `sha256` bind an image to it. */
export interface Engine {
  readonly path: string;
  readonly version: string;
  readonly sha256: string;
  /** The source's name. */
  readonly source: string;
}

/** One way to get a runsc. The sources are tried in order; the first that has one wins. */
export interface EngineSource {
  readonly name: string;
  /** The next action, for people. */
  readonly message: string;
  readonly timeoutMs: number;
  /** Skipped, with the reason, if this source has no runsc that is new enough. */
  find(context: SetupContext, signal: AbortSignal): Promise<StepResult<Engine>>;
}
