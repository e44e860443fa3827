import { ATTACH_STDIN_BYTES, SandboxerError } from "@sandboxer/protocol";
import type { ManagedProcess } from "../../../manager/processes/managed-process.ts";
import { SerialQueue } from "../../../support/serial-queue.ts";
import type { ProcessWire } from "./process-wire.ts";

/** What the agent takes in one request. */
const PIECE_BYTES = 64 * 1024;

/** Brings a client's stdin to a process, no faster than it reads, and counts what was taken. */
export class StdinFeed {
  readonly #process: ManagedProcess;
  readonly #wire: ProcessWire;
  readonly #queue = new SerialQueue();
  #takenBytes = 0;
  /** Handed to the sandbox, which finishes it even when it is saved meanwhile. */
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

  /** Gives no more; how much was taken on the whole. */
  stop(): number {
    this.#stopped = true;
    return this.#takenBytes + this.#underWayBytes;
  }

  /** What a process does not want to read is as good as taken: its output is still of interest. */
  async #give(piece: Uint8Array): Promise<void> {
    this.#underWayBytes = piece.length;
    await this.#process.writeStdin(piece).catch(() => {});
    this.#underWayBytes = 0;
    this.#takenBytes += piece.length;
    this.#pendingBytes -= piece.length;
  }
}
