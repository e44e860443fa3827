import { type Duplex, duplexPair } from "node:stream";
import { SandboxerError } from "@sandboxer/protocol";
import type { SandboxConnection } from "../../backend.ts";
import type { MachineProcess } from "./machine-process.ts";

const CHOSEN_PORT = 40_000;

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
  readonly #served = new Map<number, (connection: SandboxConnection) => void>();
  readonly #dialed = new Set<Duplex>();

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

  /** Opens a port for the host; 0 chooses one. */
  serve(port: number, onConnection: (connection: SandboxConnection) => void): number {
    if (this.#ports.has(port)) throw new SandboxerError("wrong_state", `A program has port ${port}.`);
    const open = port === 0 ? CHOSEN_PORT : port;
    this.#served.set(open, onConnection);
    return open;
  }

  /** A program's end of a connection to a port that the host serves. */
  dial(port: number): Duplex {
    const onConnection = this.#served.get(port);
    if (onConnection === undefined) throw new SandboxerError("backend_unavailable", `Port ${port} is closed.`);
    const [inside, outside] = duplexPair();
    inside.on("error", () => {});
    outside.on("error", () => {});
    this.#dialed.add(inside);
    inside.once("close", () => this.#dialed.delete(inside));
    onConnection({
      data: outside.iterator({ destroyOnReturn: false }),
      write: (data) =>
        new Promise((resolve, reject) => outside.write(data, (error) => (error ? reject(error) : resolve()))),
      end: async () => void outside.end(),
      close: async () => {
        outside.destroy();
        inside.destroy();
      },
    });
    return inside;
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
    for (const inside of this.#dialed) inside.destroy();
    this.#ports.clear();
  }
}
