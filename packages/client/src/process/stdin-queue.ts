import { SandboxerError } from "@sandboxer/protocol/errors";

interface Write {
  bytes: Uint8Array;
  /** How many of them were sent on the current socket. */
  sent: number;
  /** How many of them the process has read. */
  taken: number;
  readonly done: PromiseWithResolvers<void>;
}

/** Half of the server's limit of unread stdin. */
const WINDOW_BYTES = 512 * 1024;
const PIECE_BYTES = 64 * 1024;

/**
 * Pending writes to a process, in order. The server reports how much the process has read, so that after a move exactly
 * the rest is sent. If a connection breaks instead, the fate of bytes in flight is unknown: those writes fail, and with
 * `strict` all later ones too, because the program would read a text with a hole.
 */
export class StdinQueue {
  readonly #strict: boolean;
  #writes: Write[] = [];
  /** For the current socket. */
  #takenHere = 0;
  #failed: SandboxerError | undefined;
  #send: ((bytes: Uint8Array) => boolean) | undefined;
  #sendClose: (() => void) | undefined;
  #closed = false;

  constructor(strict: boolean) {
    this.#strict = strict;
  }

  /** Resolves when the process has read all of it. */
  async write(bytes: Uint8Array): Promise<void> {
    if (this.#failed !== undefined) throw this.#failed;
    if (this.#closed) throw new SandboxerError("wrong_state", "stdin was closed.");
    if (bytes.length === 0) return;
    const write: Write = { bytes, sent: 0, taken: 0, done: Promise.withResolvers() };
    this.#writes.push(write);
    this.#pump();
    return write.done.promise;
  }

  /** Closes stdin after everything that was written. */
  close(): void {
    this.#closed = true;
    this.#pump();
  }

  /** A socket is open. */
  connected(send: (bytes: Uint8Array) => boolean, sendClose: () => void): void {
    this.#takenHere = 0;
    [this.#send, this.#sendClose] = [send, sendClose];
    this.#pump();
  }

  /** The server reports how many bytes of this socket the process has read. */
  taken(totalHere: number): void {
    let fresh = totalHere - this.#takenHere;
    this.#takenHere = totalHere;
    for (const write of this.#writes) {
      const part = Math.min(fresh, write.sent - write.taken);
      write.taken += part;
      fresh -= part;
      if (write.taken === write.bytes.length) write.done.resolve();
    }
    this.#writes = this.#writes.filter(({ taken, bytes }) => taken < bytes.length);
    this.#pump();
  }

  /** The socket closed. After a move the server has reported what was read; otherwise bytes in flight are in doubt. */
  disconnected(known: boolean): void {
    [this.#send, this.#sendClose] = [undefined, undefined];
    const doubtful = known ? [] : this.#writes.filter(({ sent, taken }) => sent > taken);
    for (const write of this.#writes) write.sent = write.taken;
    if (doubtful.length === 0) return;
    const error = new SandboxerError("server_unreachable", "The connection was lost while stdin was being sent.", {
      hint: "It is unknown how much the process has read. Its output continues.",
    });
    if (this.#strict) return this.fail(error);
    for (const write of doubtful) write.done.reject(error);
    this.#writes = this.#writes.filter((write) => !doubtful.includes(write));
  }

  /** Nothing will be written any more. */
  fail(error: SandboxerError): void {
    this.#failed ??= error;
    for (const { done } of this.#writes) done.reject(error);
    this.#writes = [];
  }

  #pump(): void {
    if (this.#send === undefined) return;
    let onTheWay = this.#writes.reduce((sum, { sent, taken }) => sum + sent - taken, 0);
    for (const write of this.#writes) {
      while (write.sent < write.bytes.length && onTheWay < WINDOW_BYTES) {
        const piece = write.bytes.subarray(write.sent, write.sent + PIECE_BYTES);
        if (!this.#send(piece)) return;
        write.sent += piece.length;
        onTheWay += piece.length;
      }
    }
    if (this.#closed && this.#writes.length === 0) this.#sendClose?.();
  }
}
