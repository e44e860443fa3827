/**
 * Which container was the service's when a sandbox was last ready, by the sandbox's id. Whoever works there may have made
 * another since: one that does not run any more is forgotten, and looked for.
 */
export class ServiceContainers {
  readonly #known = new Map<string, string>();

  get(sandboxId: string): string | undefined {
    return this.#known.get(sandboxId);
  }

  /** As the host says it, which is not to be trusted with more than an id. */
  note(sandboxId: string, said: string): void {
    if (/^[0-9a-f]{64}$/.test(said)) this.#known.set(sandboxId, said);
    else this.forget(sandboxId);
  }

  forget(sandboxId: string): void {
    this.#known.delete(sandboxId);
  }
}
