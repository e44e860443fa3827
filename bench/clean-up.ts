type Step = () => Promise<void> | void;

/** Clean-up steps, newest first, run at the end or on SIGINT and SIGTERM. Every step is tried. */
export class CleanUp {
  readonly #steps = new Set<Step>();
  #running: Promise<void> | undefined;

  /** Returns a function that runs the step now and removes it from the list. */
  add(step: Step): () => Promise<void> {
    this.#steps.add(step);
    return async () => {
      if (this.#steps.delete(step)) await step();
    };
  }

  run(): Promise<void> {
    this.#running ??= this.#runAll();
    return this.#running;
  }

  onSignals(): void {
    for (const [signal, code] of [
      ["SIGINT", 130],
      ["SIGTERM", 143],
    ] as const) {
      process.once(signal, () => {
        process.stderr.write(`\n${signal}: cleaning up\n`);
        void this.run().finally(() => process.exit(code));
      });
    }
  }

  async #runAll(): Promise<void> {
    for (const step of [...this.#steps].toReversed()) {
      try {
        await step();
      } catch (error) {
        process.stderr.write(`clean-up: ${error instanceof Error ? error.message : String(error)}\n`);
      }
    }
  }
}
