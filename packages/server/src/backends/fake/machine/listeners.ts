import { SandboxerError } from "@sandboxer/protocol";
import type { MachineProcess } from "./machine-process.ts";

/** One open connection: echoed data that was not read yet. */
export interface EchoConnection {
  readonly port: number;
  readonly pid: number;
  readonly pending: Uint8Array[];
  closed: boolean;
  wake: () => void;
}

/**
 * The ports on which processes listen; all of them echo, unless a test serves the port (`FakeBackend.services`). Connections end with their process and are not part of a
 * snapshot.
 */
export class Listeners {
  readonly #ports = new Map<number, number>();
  readonly #connections = new Set<EchoConnection>();

  /** False if another process has the port. */
  listen(port: number, process: MachineProcess): boolean {
    const holder = this.#ports.get(port);
    if (holder !== undefined && holder !== process.pid) return false;
    this.#ports.set(port, process.pid);
    return true;
  }

  get ports(): readonly number[] {
    return [...this.#ports.keys()];
  }

  connect(port: number): EchoConnection {
    const pid = this.#ports.get(port);
    if (pid === undefined) {
      throw new SandboxerError("backend_unavailable", `Nothing listens on port ${port} inside the sandbox.`, {
        hint: "Start the program that listens, and connect again.",
        details: { port, errno: "ECONNREFUSED" },
      });
    }
    const connection: EchoConnection = { port, pid, pending: [], closed: false, wake: () => undefined };
    this.#connections.add(connection);
    return connection;
  }

  close(connection: EchoConnection): void {
    connection.closed = true;
    this.#connections.delete(connection);
    connection.wake();
  }

  closeAllOf(pid: number): void {
    for (const [port, holder] of this.#ports) if (holder === pid) this.#ports.delete(port);
    for (const connection of this.#connections) if (connection.pid === pid) this.close(connection);
  }

  closeAll(): void {
    for (const connection of this.#connections) this.close(connection);
    this.#ports.clear();
  }
}
