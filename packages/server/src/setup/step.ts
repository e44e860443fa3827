import { asSandboxerError, SandboxerError } from "@sandboxer/protocol";

/** Progress of a set-up step: reported once at its start, once at its end. */
export interface SetupStep {
  /** Stable, for programs: `engine: debian package`. */
  readonly name: string;
  readonly state: "start" | "done" | "skipped" | "failed";
  /** One line for people. */
  readonly message: string;
  readonly elapsedMs: number;
}

export type ReportStep = (step: SetupStep) => void;

export interface StepPlan<T> {
  readonly name: string;
  readonly message: string;
  readonly timeoutMs: number;
  readonly signal?: AbortSignal | undefined;
  readonly work: (signal: AbortSignal) => Promise<StepResult<T>>;
}

/** A step with nothing to do, or that is not possible here, is skipped with the reason; the caller continues. */
export type StepResult<T> = { readonly value: T; readonly message: string } | { readonly skipped: string };

/** Runs one step with its time limit and reports it. Undefined if it was skipped. Failures are reported and thrown. */
export async function runStep<T>(report: ReportStep, plan: StepPlan<T>): Promise<T | undefined> {
  const { name, message, timeoutMs, work } = plan;
  const startMs = performance.now();
  const tell = (state: SetupStep["state"], text: string): void =>
    report({ name, state, message: text, elapsedMs: Math.round(performance.now() - startMs) });

  tell("start", message);
  const timeOut = AbortSignal.timeout(timeoutMs);
  const signal = plan.signal === undefined ? timeOut : AbortSignal.any([timeOut, plan.signal]);
  try {
    const result = await work(signal);
    if ("skipped" in result) {
      tell("skipped", result.skipped);
      return undefined;
    }
    tell("done", result.message);
    return result.value;
  } catch (thrown) {
    const error = timeOut.aborted
      ? new SandboxerError("timeout", `${name}: not done within ${timeoutMs / 1000} s.`, { cause: thrown })
      : asSandboxerError(thrown);
    tell("failed", error.message);
    throw error;
  }
}
