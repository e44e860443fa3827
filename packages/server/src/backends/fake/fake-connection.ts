import { SandboxerError } from "@sandboxer/protocol";
import type { SandboxConnection } from "../backend.ts";
import type { EchoConnection } from "./machine/listeners.ts";
import type { Machine } from "./machine/machine.ts";

/** A connection to a port inside: what is written comes back. */
export class FakeConnection implements SandboxConnection {
  readonly data: AsyncIterable<Uint8Array>;
  readonly #connection: EchoConnection;
  readonly #machine: Machine;

  constructor(connection: EchoConnection, machine: Machine) {
    this.#connection = connection;
    this.#machine = machine;
    this.data = receive(connection);
  }

  async write(data: Uint8Array): Promise<void> {
    await this.#machine.scheduler.running();
    if (this.#connection.closed) throw new SandboxerError("wrong_state", "The connection is closed.");
    this.#connection.pending.push(Uint8Array.from(data));
    this.#connection.wake();
  }

  close(): Promise<void> {
    this.#machine.listeners.close(this.#connection);
    return Promise.resolve();
  }
}

async function* receive(connection: EchoConnection): AsyncGenerator<Uint8Array> {
  for (;;) {
    const next = connection.pending.shift();
    if (next !== undefined) {
      yield next;
      continue;
    }
    if (connection.closed) return;
    await new Promise<void>((resolve) => {
      connection.wake = resolve;
    });
  }
}
