import { live, type LiveSandbox } from "./live-sandbox.ts";
import type { Sandbox } from "./sandbox.ts";

/** A part of the manager as others see it: its verbs, which know their context already. */
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

  /** What is done with a sandbox that runs here. */
  protected verbOn<Given extends readonly unknown[], Result>(
    verb: (context: Context, sandbox: LiveSandbox, ...given: Given) => Result,
  ): (sandbox: Sandbox, ...given: Given) => Result {
    return (sandbox, ...given) => verb(this.context, live(sandbox), ...given);
  }
}
