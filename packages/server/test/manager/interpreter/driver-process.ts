import { type ChildProcessByStdio, spawn } from "node:child_process";
import { randomUUID } from "node:crypto";
import { EventEmitter, on } from "node:events";
import type { Readable, Writable } from "node:stream";
import type { CellResult, ContextLanguage } from "@sandboxer/protocol";
import { onTestFinished } from "vitest";
import type { OutputChunk } from "../../../src/backends/backend.ts";
import type { Frame } from "../../../src/manager/interpreter/frames.ts";
import { driverOf, frameReaderOf, requestLine } from "../../../src/manager/interpreter/languages.ts";

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
  readonly #child: ChildProcessByStdio<Writable, Readable, Readable>;
  readonly #language: ContextLanguage;
  readonly #frames: AsyncIterator<Frame>;

  private constructor(child: ChildProcessByStdio<Writable, Readable, Readable>, language: ContextLanguage) {
    this.#child = child;
    this.#language = language;
    child.stdin.on("error", () => {});
    this.#frames = framesOf(child, language);
  }

  static async start(
    language: ContextLanguage,
    options: { readonly cwd?: string; readonly env?: Readonly<Record<string, string>> } = {},
  ): Promise<DriverProcess> {
    const { argv, program } = await driverOf(language);
    const child = spawn(argv[0] ?? "", argv.slice(1), {
      stdio: ["pipe", "pipe", "pipe"],
      detached: true,
      ...(options.cwd === undefined ? {} : { cwd: options.cwd }),
      env: { PATH: process.env["PATH"], LANG: "C.UTF-8", ...options.env },
    });
    onTestFinished(() => {
      if (child.exitCode === null && child.signalCode === null) process.kill(-(child.pid ?? 0), "SIGKILL");
    });
    child.stdin.write(program);
    const driver = new DriverProcess(child, language);
    // The others have nothing to say before their first cell.
    if (language === "python") await driver.until("ready");
    return driver;
  }

  /** `onFrame` gets each frame live. */
  async run(
    code: string,
    {
      env = {},
      onFrame,
    }: { readonly env?: Readonly<Record<string, string>>; readonly onFrame?: (frame: Frame) => void } = {},
  ): Promise<RanCell> {
    const id = randomUUID();
    this.#child.stdin.write(requestLine(this.#language, { id, code, env }));
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

async function* framesOf(
  child: ChildProcessByStdio<Writable, Readable, Readable>,
  language: ContextLanguage,
): AsyncGenerator<Frame, void, undefined> {
  const reader = frameReaderOf(language);
  const chunks = new EventEmitter();
  for (const stream of ["stdout", "stderr"] as const) {
    child[stream].on("data", (data: Buffer) => chunks.emit("chunk", { stream, offset: 0, data }));
  }
  child.once("close", () => chunks.emit("end"));
  for await (const [chunk] of on(chunks, "chunk", { close: ["end"] })) {
    for (const { frame } of reader.read(chunk as OutputChunk)) yield frame;
  }
}
