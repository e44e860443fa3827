import { ATTACH_STDIN_BYTES, SandboxerError } from "@sandboxer/protocol";
import type { ManagedProcess } from "../../../manager/processes/managed-process.ts";
import { SerialQueue } from "../../../support/serial-queue.ts";
import type { ProcessWire } from "./process-wire.ts";

/** The most that the agent accepts in one request. */
const PIECE_BYTES = 64 * 1024;

/** Feeds a client's stdin to a process, no faster than it reads, and counts the accepted bytes. */
export class StdinFeed {
  readonly #process: ManagedProcess;
  readonly #wire: ProcessWire;
  readonly #queue = new SerialQueue();
  #takenBytes = 0;
  /** Passed to the sandbox, which finishes it even if it is saved meanwhile. */
  #underWayBytes = 0;
  #pendingBytes = 0;
  #stopped = false;

  constructor(process: ManagedProcess, wire: ProcessWire) {
    this.#process = process;
    this.#wire = wire;
  }

  push(data: Uint8Array): void {
    this.#pendingBytes += data.length;
    if (this.#pendingBytes > ATTACH_STDIN_BYTES) {
      throw new SandboxerError("too_large", "Too much stdin was sent before the process read it.", {
        hint: "Wait for the stdin events: at most 1 MiB may be unconfirmed.",
      });
    }
    void this.#queue.run(async () => {
      for (let start = 0; start < data.length && !this.#stopped; start += PIECE_BYTES) {
        await this.#give(data.subarray(start, start + PIECE_BYTES));
      }
      if (this.#stopped) return;
      this.#wire.event({ event: "stdin", bytes: this.#takenBytes });
      await this.#wire.drained();
    });
  }

  close(): void {
    void this.#queue.run(async () => {
      if (!this.#stopped) await this.#process.closeStdin().catch(() => {});
    });
  }

  /** Stops; returns how much was accepted in total. */
  stop(): number {
    this.#stopped = true;
    return this.#takenBytes + this.#underWayBytes;
  }

  /** Input that a process does not want to read counts as accepted: its output is still of interest. */
  async #give(piece: Uint8Array): Promise<void> {
    this.#underWayBytes = piece.length;
    await this.#process.writeStdin(piece).catch(() => {});
    this.#underWayBytes = 0;
    this.#takenBytes += piece.length;
    this.#pendingBytes -= piece.length;
  }
}
