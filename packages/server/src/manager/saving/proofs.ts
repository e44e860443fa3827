import { SandboxerError } from "@sandboxer/protocol";
import { SerialQueue } from "../../support/serial-queue.ts";

/** More would only wait; the ones left out can still be test-restored on request. */
const MOST_WAITING = 100;

/**
 * The test restores of a server, one after the other. The sandbox of a test restore uses a place on this machine only
 * while nobody else needs it: it yields to users' sandboxes and to the shutdown of the server.
 */
export class Proofs {
  readonly #queue = new SerialQueue();
  #waiting = 0;
  #running: { readonly stop: AbortController; readonly ended: PromiseWithResolvers<void> } | undefined;
  #leaving: Promise<void> | undefined;
  #over: SandboxerError | undefined;

  /** How many sandboxes of test restores exist now. */
  get size(): number {
    return this.#running === undefined ? 0 : 1;
  }

  get full(): boolean {
    return this.#waiting >= MOST_WAITING;
  }

  async run<Result>(prove: (signal: AbortSignal) => Promise<Result>): Promise<Result> {
    if (this.full) {
      throw new SandboxerError("limit_reached", `${MOST_WAITING} test restores are already waiting.`, {
        hint: "They run one after the other; try again when some of them are done.",
      });
    }
    this.#waiting += 1;
    try {
      return await this.#queue.run(async () => {
        if (this.#over !== undefined) throw this.#over;
        const running = { stop: new AbortController(), ended: Promise.withResolvers<void>() };
        this.#running = running;
        try {
          return await prove(running.stop.signal);
        } finally {
          this.#running = undefined;
          this.#leaving = undefined;
          running.ended.resolve();
        }
      });
    } finally {
      this.#waiting -= 1;
    }
  }

  /** Its place is needed; the place is free once {@link gone} resolves. */
  giveWay(): void {
    if (this.#running === undefined) return;
    this.#leaving = this.#running.ended.promise;
    this.#running.stop.abort(
      new SandboxerError(
        "limit_reached",
        "The test restore was cancelled because the server reached its limit of sandboxes.",
        {
          hint: "Try again later, or raise --max-sandboxes of the server.",
        },
      ),
    );
  }

  /** When the cancelled test restore has ended; undefined: none has to. */
  get gone(): Promise<void> | undefined {
    return this.#leaving;
  }

  /** Stops everything: the server ends. */
  stop(): void {
    this.#over = new SandboxerError("draining", "The server is shutting down.");
    this.#running?.stop.abort(this.#over);
  }
}
