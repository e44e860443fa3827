import { SandboxerError } from "@sandboxer/protocol";

interface Entry<Begun> {
  readonly requestDigest: string;
  readonly begun: Promise<Begun>;
  readonly sinceMs: number;
  /** The size of the response, once it is known. */
  bytes: number;
}

const KEEP_MS = 24 * 3_600_000;
const KEEP_ENTRIES = 10_000;
const KEEP_BYTES = 64 * 1024 * 1024;
/** A larger response is not kept: a few of them would push out everyone else's. */
const MAX_ANSWER_BYTES = 1024 * 1024;

/**
 * Calls with an `Idempotency-Key`: a repeated request, even while the first is in progress, gets the result of the
 * first. A failed one is forgotten, so that it can be retried.
 */
export class IdempotentCalls<Begun extends { readonly result: Promise<unknown> }> {
  readonly #nowMs: () => number;
  /** Oldest first. */
  readonly #entries = new Map<string, Entry<Begun>>();
  #bytes = 0;

  constructor(nowMs: () => number) {
    this.#nowMs = nowMs;
  }

  /** `key` separates callers and routes; `requestDigest` is of everything that must be equal. */
  async once(key: string, requestDigest: string, begin: () => Promise<Begun>): Promise<Begun> {
    this.#forgetOld();
    const known = this.#entries.get(key);
    if (known !== undefined) {
      if (known.requestDigest === requestDigest) return known.begun;
      throw usedForAnother();
    }
    const entry: Entry<Begun> = { requestDigest, begun: begin(), sinceMs: this.#nowMs(), bytes: 0 };
    this.#entries.set(key, entry);
    entry.begun
      .then(({ result }) => result)
      .then(
        (answer) => this.#weigh(key, entry, answer),
        () => this.#forget(key, entry),
      );
    return await entry.begun;
  }

  #weigh(key: string, entry: Entry<Begun>, answer: unknown): void {
    if (this.#entries.get(key) !== entry) return;
    entry.bytes = Buffer.byteLength(JSON.stringify(answer) ?? "");
    this.#bytes += entry.bytes;
    if (entry.bytes > MAX_ANSWER_BYTES) this.#forget(key, entry);
    this.#forgetOld();
  }

  #forget(key: string, entry: Entry<Begun>): void {
    if (this.#entries.get(key) !== entry) return;
    this.#entries.delete(key);
    this.#bytes -= entry.bytes;
  }

  #forgetOld(): void {
    for (const [key, entry] of this.#entries) {
      const fits = this.#entries.size <= KEEP_ENTRIES && this.#bytes <= KEEP_BYTES;
      if (fits && this.#nowMs() - entry.sinceMs < KEEP_MS) return;
      this.#forget(key, entry);
    }
  }
}

export function usedForAnother(): SandboxerError {
  return new SandboxerError("bad_request", "This Idempotency-Key was used for another request.", {
    hint: "Use a fresh key for each request, and the same key only to repeat one.",
  });
}
