import { type ChildProcess, spawn } from "node:child_process";
import { join } from "node:path";
import { createInterface } from "node:readline";
import { eventually } from "../../test/kit/eventually.ts";
import { inNetworkOf } from "./processes.ts";

const EXAMPLES = join(import.meta.dirname, "../../examples/three-servers");
const PATIENCE_MS = 10 * 60_000;

/**
 * The programs of examples/three-servers, which end with an error when something is lost or comes twice. `count` reads an execution over a
 * WebSocket: it needs no checkpoint, so it may lose its server to a stop, and not to a kill. `calls` makes HTTP calls and
 * saves after each number.
 */
export type ClientKind = "count" | "calls";

export class Client {
  readonly name: string;
  readonly kind: ClientKind;
  /** The last number that it has checked. */
  number = 0;
  /** Set when it has one. */
  sandboxId = "";
  /** How often it had to connect again. */
  moves = 0;
  #said = "";
  readonly #child: ChildProcess;

  constructor(kind: ClientKind, index: number, options: { node: string; address: string; key: string }) {
    this.name = `${kind} ${index}`;
    this.kind = kind;
    const url = `${kind === "count" ? "ws" : "http"}://${options.address}`;
    const argv = inNetworkOf(options.node, [process.execPath, join(EXAMPLES, `${kind}.mjs`), url, "1000000"]);
    const [program = "", ...rest] = argv;
    const env = { ...process.env, SANDBOXER_API_KEY: options.key };
    this.#child = spawn(program, rest, { env, stdio: ["ignore", "pipe", "pipe"] });
    for (const stream of [this.#child.stdout, this.#child.stderr]) {
      if (stream !== null) createInterface(stream).on("line", (line) => this.#hear(line));
    }
  }

  #hear(line: string): void {
    this.#said = line;
    if (/^\d+$/.test(line)) this.number = Number(line);
    else if (line.includes("another connection")) this.moves += 1;
  }

  /** Throws when it has ended, with its last words. */
  async advance(by: number): Promise<void> {
    const target = this.number + by;
    await eventually(
      `${this.name} gets from ${this.number} to ${target}: ${this.#said}`,
      () => {
        if (this.#child.exitCode !== null) throw new Error(`${this.name} has ended: ${this.#said}`);
        return this.number >= target;
      },
      PATIENCE_MS,
    );
  }

  stop(): void {
    this.#child.kill("SIGKILL");
  }
}
