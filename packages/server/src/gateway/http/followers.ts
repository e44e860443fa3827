import type { Readable } from "node:stream";
import { SandboxerError } from "@sandboxer/protocol";

const MAX_PER_CALLER = 64;

/** Those who follow events. Each holds a connection and a queue, so there are only so many of them. */
export class Followers {
  readonly #max: number;
  readonly #byCaller = new Map<string, number>();
  #count = 0;

  constructor(max: number) {
    this.#max = max;
  }

  /** A stream has a place until it is closed. */
  admitted(callerId: string, open: () => Readable): Readable {
    const own = this.#byCaller.get(callerId) ?? 0;
    if (own >= MAX_PER_CALLER) throw full(`You follow events ${own} times, which is the limit.`);
    if (this.#count >= this.#max) throw full(`The server has ${this.#count} followers, which is its limit.`);
    const stream = open();
    this.#byCaller.set(callerId, own + 1);
    this.#count += 1;
    stream.once("close", () => this.#leave(callerId));
    return stream;
  }

  #leave(callerId: string): void {
    const left = (this.#byCaller.get(callerId) ?? 1) - 1;
    if (left === 0) this.#byCaller.delete(callerId);
    else this.#byCaller.set(callerId, left);
    this.#count -= 1;
  }
}

function full(message: string): SandboxerError {
  return new SandboxerError("limit_reached", message, {
    hint: "Close event streams that nobody reads, or raise the server's --max-clients.",
  });
}
