/** Calls that need something inside wait here while the sandbox is paused. */
export class PauseGate {
  #closed: PromiseWithResolvers<void> | undefined;

  get paused(): boolean {
    return this.#closed !== undefined;
  }

  close(): void {
    this.#closed ??= Promise.withResolvers<void>();
  }

  open(): void {
    this.#closed?.resolve();
    this.#closed = undefined;
  }

  async passage(): Promise<void> {
    while (this.#closed !== undefined) await this.#closed.promise;
  }
}
