import { SandboxerError } from "@sandboxer/protocol";
import { SerialQueue } from "../../support/serial-queue.ts";

const CALLED_OFF = "called_off";

/** Whether a save ended because of {@link LiveSaves.callOff}. */
export function wasCalledOff({ details }: SandboxerError): boolean {
  return details[CALLED_OFF] === true;
}

/** The write of a captured state in progress. */
interface Writing {
  readonly controller: AbortController;
  readonly ended: Promise<void>;
}

/**
 * The checkpoints of one sandbox that keeps running, one after the other. The capture runs in the sandbox's queue;
 * writing and publishing do not. So ending, releasing or replacing the copy cancels them first, or an old state would
 * be published over a newer one.
 */
export class LiveSaves {
  readonly #queue = new SerialQueue();
  #waiting = 0;
  #writing: Writing | undefined;

  /** Whether a save is running or waiting. */
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

  /** Call it in the sandbox's turn: from here on the save can be cancelled, until `end`. */
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

  /**
   * Call it in the sandbox's turn. Resolves when nothing is written any more; a state that is already published counts.
   */
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
