/**
 * The service's container when a sandbox was last ready, by sandbox id. It may have been replaced since: one that is no
 * longer running is forgotten, and looked up again.
 */
export class ServiceContainers {
  readonly #known = new Map<string, string>();

  get(sandboxId: string): string | undefined {
    return this.#known.get(sandboxId);
  }

  /** As the host reports it, which is trusted with no more than an id. */
  note(sandboxId: string, said: string): void {
    if (/^[0-9a-f]{64}$/.test(said)) this.#known.set(sandboxId, said);
    else this.forget(sandboxId);
  }

  forget(sandboxId: string): void {
    this.#known.delete(sandboxId);
  }
}
