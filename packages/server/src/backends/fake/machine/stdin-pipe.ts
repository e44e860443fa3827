/** The capacity of a Linux pipe. */
const PIPE_BYTES = 64 << 10;

export interface StdinState {
  readonly buffered: string;
  readonly closed: boolean;
}

/** The stdin of a process: a bounded buffer of bytes that ends. */
export class StdinPipe {
  #buffered: string;
  #closed: boolean;
  readonly #waiting = new Set<() => void>();

  constructor(state: StdinState = { buffered: "", closed: false }) {
    this.#buffered = state.buffered;
    this.#closed = state.closed;
  }

  get closed(): boolean {
    return this.#closed;
  }

  /** Nothing is left and nothing will come. */
  get atEnd(): boolean {
    return this.#closed && this.#buffered === "";
  }

  /** How many of the bytes were accepted. */
  write(bytes: string): number {
    const taken = bytes.slice(0, PIPE_BYTES - this.#buffered.length);
    this.#buffered += taken;
    return taken.length;
  }

  close(): void {
    this.#closed = true;
  }

  takeAll(): string {
    const taken = this.#buffered;
    this.#buffered = "";
    this.notify();
    return taken;
  }

  /** Up to and including the next newline; everything when there is none. */
  takeLine(): string {
    const newline = this.#buffered.indexOf("\n");
    const taken = newline === -1 ? this.#buffered : this.#buffered.slice(0, newline + 1);
    this.#buffered = this.#buffered.slice(taken.length);
    this.notify();
    return taken;
  }

  /** Settles when bytes were read, or nobody will read any more. */
  changed(): Promise<void> {
    return new Promise((resolve) => this.#waiting.add(resolve));
  }

  notify(): void {
    const waiting = [...this.#waiting];
    this.#waiting.clear();
    for (const resolve of waiting) resolve();
  }

  capture(): StdinState {
    return { buffered: this.#buffered, closed: this.#closed };
  }
}
