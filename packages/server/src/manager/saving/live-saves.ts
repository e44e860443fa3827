import { SandboxerError } from "@sandboxer/protocol";
import { SerialQueue } from "../../support/serial-queue.ts";

const CALLED_OFF = "called_off";

/** Whether a save has ended because of {@link LiveSaves.callOff}. */
export function wasCalledOff({ details }: SandboxerError): boolean {
  return details[CALLED_OFF] === true;
}

/** What is being written of a captured state. */
interface Writing {
  readonly controller: AbortController;
  readonly ended: Promise<void>;
}

/**
 * The saves of one sandbox that goes on meanwhile: one after the other. Their capture has its turn in the sandbox's queue,
 * what is written and published afterwards has not; so whoever ends, gives up or replaces the copy calls that off first,
 * or an old state would be published over a newer one.
 */
export class LiveSaves {
  readonly #queue = new SerialQueue();
  #waiting = 0;
  #writing: Writing | undefined;

  /** Whether there is one, or will be. */
  get underWay(): boolean {
    return this.#waiting > 0;
  }

  async run<Result>(save: () => Promise<Result>): Promise<Result> {
    this.#waiting += 1;
    try {
      return await this.#queue.run(save);
    } finally {
      this.#waiting -= 1;
    }
  }

  /** To be called in the sandbox's turn: from here on it can be called off, until `end`. */
  begin(): { readonly signal: AbortSignal; readonly end: () => void } {
    const { promise: ended, resolve } = Promise.withResolvers<void>();
    const writing = { controller: new AbortController(), ended };
    this.#writing = writing;
    return {
      signal: writing.controller.signal,
      end: () => {
        this.#writing = undefined;
        resolve();
      },
    };
  }

  /** To be called in the sandbox's turn. Resolves when nothing is written any more; what was published already counts. */
  async callOff(): Promise<void> {
    const writing = this.#writing;
    writing?.controller.abort(
      new SandboxerError(
        "wrong_state",
        "The checkpoint was cancelled because the sandbox was paused, replaced or ended.",
        {
          hint: "Check the sandbox: if it was paused, its state is saved.",
          details: { [CALLED_OFF]: true },
        },
      ),
    );
    await writing?.ended;
  }
}
