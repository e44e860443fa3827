import { live, type LiveSandbox } from "./live-sandbox.ts";
import type { Sandbox } from "./sandbox.ts";

/** A part of the manager as others see it: its verbs, already bound to their context. */
export abstract class Room<Context> {
  protected readonly context: Context;

  constructor(context: Context) {
    this.context = context;
  }

  protected verb<Given extends readonly unknown[], Result>(
    verb: (context: Context, ...given: Given) => Result,
  ): (...given: Given) => Result {
    return (...given) => verb(this.context, ...given);
  }

  /** Operations on a sandbox that runs here. */
  protected verbOn<Given extends readonly unknown[], Result>(
    verb: (context: Context, sandbox: LiveSandbox, ...given: Given) => Result,
  ): (sandbox: Sandbox, ...given: Given) => Result {
    return (sandbox, ...given) => verb(this.context, live(sandbox), ...given);
  }
}
