import { spawn, type ChildProcess } from "node:child_process";
import type { Socket } from "node:net";
import { openStdioPipes } from "../../packages/server/src/backends/gvisor/stdio-pipes.ts";
import { endSandboxProcesses } from "../../packages/server/src/backends/gvisor/sandbox-process-tree.ts";

/** One attached `runsc run` or `runsc restore`, with real pipes on its stdin and stdout. */
export class RawContainer {
  readonly id: string;
  readonly input: Socket;
  readonly output: Socket;
  /** When runsc was started. */
  readonly startMs: number;
  readonly exited: Promise<number>;
  readonly #child: ChildProcess;
  /** Kills it and removes leftovers; set by the engine. */
  end: () => Promise<void> = async () => {};

  private constructor(id: string, input: Socket, output: Socket, startMs: number, child: ChildProcess) {
    this.id = id;
    this.input = input;
    this.output = output;
    this.startMs = startMs;
    this.#child = child;
    this.exited = new Promise((resolve) => child.once("close", (code) => resolve(code ?? 137)));
    input.on("error", () => {});
  }

  /** Pipes are opened before the clock starts. */
  static async start(path: string, args: readonly string[], id: string, directory: string): Promise<RawContainer> {
    const pipes = await openStdioPipes(directory);
    const startMs = performance.now();
    const child = spawn(path, args, { stdio: [pipes.childInput, pipes.childOutput, "ignore"], detached: true });
    pipes.closeChildEnds();
    return new RawContainer(id, pipes.input, pipes.output, startMs, child);
  }

  get pid(): number {
    return this.#child.pid ?? 0;
  }

  /** Time from the start of runsc to the first byte on stdout. */
  async firstByteMs(): Promise<number> {
    await new Promise<void>((resolve, reject) => {
      this.output.once("data", () => resolve());
      this.output.once("end", () => reject(new Error(`${this.id} ended without output`)));
    });
    return performance.now() - this.startMs;
  }

  /** Counts stdout to its end. */
  async countOutput(): Promise<{ bytes: number; firstMs: number; lastMs: number }> {
    let bytes = 0;
    let firstMs = 0;
    let lastMs = 0;
    await new Promise<void>((resolve) => {
      this.output.on("data", (chunk: Buffer) => {
        lastMs = performance.now();
        if (bytes === 0) firstMs = lastMs;
        bytes += chunk.length;
      });
      this.output.once("end", () => resolve());
    });
    return { bytes, firstMs, lastMs };
  }

  async kill(): Promise<void> {
    if (this.#child.exitCode === null && this.#child.signalCode === null) {
      await endSandboxProcesses({ child: this.#child, exited: this.exited, lastWords: () => "" });
    }
    this.input.destroy();
    this.output.destroy();
  }
}
