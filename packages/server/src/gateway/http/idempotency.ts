import { createHash } from "node:crypto";
import { SandboxerError } from "@sandboxer/protocol";

interface Entry {
  readonly requestDigest: string;
  readonly answer: Promise<unknown>;
  readonly sinceMs: number;
}

const KEEP_MS = 24 * 3_600_000;
const KEEP_ENTRIES = 10_000;

/**
 * The answers to requests with an `Idempotency-Key`: the same request again, also while the first is under way, gives the
 * first answer. One that failed is forgotten, so that it can be tried again.
 */
export class IdempotentAnswers {
  readonly #nowMs: () => number;
  /** Oldest first. */
  readonly #entries = new Map<string, Entry>();

  constructor(nowMs: () => number) {
    this.#nowMs = nowMs;
  }

  /** `identity` tells callers and routes apart; `request` is everything that must be the same. */
  async answer(identity: readonly string[], request: unknown, run: () => Promise<unknown>): Promise<unknown> {
    const key = JSON.stringify(identity);
    const requestDigest = createHash("sha256").update(JSON.stringify(request)).digest("hex");
    this.#forgetOld();
    const known = this.#entries.get(key);
    if (known !== undefined) {
      if (known.requestDigest === requestDigest) return known.answer;
      throw new SandboxerError("bad_request", "This Idempotency-Key was used for another request.", {
        hint: "Use a fresh key for each request, and the same key only to repeat one.",
      });
    }
    const answer = run();
    this.#entries.set(key, { requestDigest, answer, sinceMs: this.#nowMs() });
    answer.catch(() => this.#entries.delete(key));
    return answer;
  }

  #forgetOld(): void {
    for (const [key, { sinceMs }] of this.#entries) {
      if (this.#entries.size <= KEEP_ENTRIES && this.#nowMs() - sinceMs < KEEP_MS) return;
      this.#entries.delete(key);
    }
  }
}
