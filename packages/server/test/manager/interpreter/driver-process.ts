import { type ChildProcessByStdio, spawn } from "node:child_process";
import { on } from "node:events";
import type { Readable, Writable } from "node:stream";
import type { CellResult, ContextLanguage } from "@sandboxer/protocol";
import { onTestFinished } from "vitest";
import { FrameReader, type Frame } from "../../../src/manager/interpreter/frames.ts";
import { driverOf } from "../../../src/manager/interpreter/languages.ts";

export interface RanCell {
  readonly frames: readonly Frame[];
  readonly stdout: string;
  readonly stderr: string;
  readonly results: readonly Omit<CellResult, "main">[];
  readonly error: Extract<Frame, { f: "error" }> | undefined;
  /** Undefined: the interpreter ended. */
  readonly status: string | undefined;
}

/** A driver as a program of this machine. */
export class DriverProcess {
  readonly #child: ChildProcessByStdio<Writable, Readable, null>;
  readonly #frames: AsyncIterator<Frame>;
  #cells = 0;

  private constructor(child: ChildProcessByStdio<Writable, Readable, null>) {
    this.#child = child;
    child.stdin.on("error", () => {});
    this.#frames = framesOf(child.stdout);
  }

  static async start(
    language: ContextLanguage,
    options: { readonly cwd?: string; readonly env?: Readonly<Record<string, string>> } = {},
  ): Promise<DriverProcess> {
    const { argv, program } = await driverOf(language);
    const child = spawn(argv[0] ?? "", argv.slice(1), {
      stdio: ["pipe", "pipe", "inherit"],
      detached: true,
      ...(options.cwd === undefined ? {} : { cwd: options.cwd }),
      env: { PATH: process.env["PATH"], LANG: "C.UTF-8", ...options.env },
    });
    onTestFinished(() => {
      if (child.exitCode === null && child.signalCode === null) process.kill(-(child.pid ?? 0), "SIGKILL");
    });
    child.stdin.write(program);
    const driver = new DriverProcess(child);
    await driver.until("ready");
    return driver;
  }

  /** `onFrame` sees each frame as it comes. */
  async run(
    code: string,
    { env = {}, onFrame }: { readonly env?: object; readonly onFrame?: (frame: Frame) => void } = {},
  ): Promise<RanCell> {
    const id = `cell-${(this.#cells += 1)}`;
    this.#child.stdin.write(`${JSON.stringify({ id, code, env })}\n`);
    const frames: Frame[] = [];
    for (;;) {
      const { value, done } = await this.#frames.next();
      if (done === true) break;
      frames.push(value);
      onFrame?.(value);
      if (value.f === "end" && value.id === id) break;
    }
    const last = frames.at(-1);
    const text = (stream: string): string =>
      frames.map((frame) => (frame.f === "out" && frame.s === stream ? frame.d : "")).join("");
    return {
      frames,
      stdout: text("stdout"),
      stderr: text("stderr"),
      results: frames.flatMap((frame) => (frame.f === "result" ? [frame.formats] : [])),
      error: frames.find((frame) => frame.f === "error"),
      status: last?.f === "end" ? last.status : undefined,
    };
  }

  interrupt(): void {
    process.kill(-(this.#child.pid ?? 0), "SIGINT");
  }

  async until(kind: Frame["f"]): Promise<Frame> {
    for (;;) {
      const { value, done } = await this.#frames.next();
      if (done === true) throw new Error(`The driver ended without ${kind}.`);
      if (value.f === kind) return value;
    }
  }
}

async function* framesOf(stdout: Readable): AsyncGenerator<Frame, void, undefined> {
  const reader = new FrameReader();
  const closing = new AbortController();
  stdout.once("close", () => closing.abort());
  try {
    for await (const [data] of on(stdout, "data", { close: ["end"], signal: closing.signal })) {
      for (const { frame } of reader.read({ stream: "stdout", offset: 0, data: data as Buffer })) yield frame;
    }
  } catch {
    // It was closed.
  }
}
