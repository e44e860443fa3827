import type { CallOptions, Progress } from "../support/call-options.ts";
import { unlessAborted } from "../support/unless-aborted.ts";

/** One piece of work for all who ask for it meanwhile. It is aborted when the last of them has given up. */
export class SharedPull<Result> {
  readonly #result: Promise<Result>;
  readonly #over = new AbortController();
  readonly #listeners = new Set<CallOptions>();
  #last: Progress | undefined;

  constructor(work: (options: Required<CallOptions>) => Promise<Result>) {
    this.#result = work({
      signal: this.#over.signal,
      onProgress: (progress) => {
        this.#last = progress;
        for (const { onProgress } of this.#listeners) onProgress?.(progress);
      },
    });
    this.#result.catch(() => {});
  }

  /** Whether it was given up, so that nobody can join. */
  get abandoned(): boolean {
    return this.#over.signal.aborted;
  }

  async join(options: CallOptions): Promise<Result> {
    // Each caller is one listener, even if two share their options.
    const listener = { ...options };
    this.#listeners.add(listener);
    if (this.#last !== undefined) options.onProgress?.(this.#last);
    try {
      return await unlessAborted(this.#result, options.signal);
    } finally {
      this.#listeners.delete(listener);
      if (this.#listeners.size === 0) this.#over.abort(options.signal?.reason);
    }
  }
}
