import { mkdir, readFile, writeFile } from "node:fs/promises";
import { dirname, join } from "node:path";
import { createInterface, type Interface } from "node:readline";
import { PassThrough, Writable } from "node:stream";
import type { Interpreter } from "@sandboxer/client";
import { asSandboxerError } from "@sandboxer/protocol/errors";
import type { Io, Terminal } from "../io.ts";
import { CellPrinter } from "./print-cell.ts";
import { isComplete } from "./python-input.ts";

const HISTORY_LINES = 1000;
const FIRST = ">>> ";
const MORE = "... ";

/** A prompt for cells in the user's terminal. Resolves when the user leaves it. */
export async function repl(io: Io, terminal: Terminal, interpreter: Interpreter, folder: string): Promise<void> {
  const output = new TerminalOutput(io, terminal);
  const input = new PassThrough();
  const history = new History(io);
  const left = new AbortController();
  const leaveRawMode = terminal.enterRawMode(() => left.abort());
  const lines = createInterface({
    input,
    output,
    terminal: true,
    history: await history.read(),
    historySize: HISTORY_LINES,
    completer: (line: string): [string[], string] => [line.trim() === "" ? [`${line}    `] : [], line],
  });
  void feed(io, input, left.signal);
  try {
    await new Prompt(lines, output, interpreter, new CellPrinter({ folder, write: output.print })).untilLeft(
      left.signal,
    );
  } finally {
    await history.save((lines as Interface & { readonly history: string[] }).history);
    lines.close();
    left.abort();
    await output.print("stdout", "");
    leaveRawMode();
  }
}

/** Reads cells from the lines that are typed, and runs one after the other. */
class Prompt {
  readonly #lines: Interface;
  readonly #output: TerminalOutput;
  readonly #interpreter: Interpreter;
  readonly #printer: CellPrinter;
  /** Typed, not yet a whole cell. */
  #typed: string[] = [];
  #running = false;

  constructor(lines: Interface, output: TerminalOutput, interpreter: Interpreter, printer: CellPrinter) {
    this.#lines = lines;
    this.#output = output;
    this.#interpreter = interpreter;
    this.#printer = printer;
  }

  async untilLeft(left: AbortSignal): Promise<void> {
    const cells: string[] = [];
    let wake = (): void => {};
    const over = new AbortController();
    const leave = (): void => {
      over.abort();
      wake();
    };
    left.addEventListener("abort", leave);
    this.#lines.on("close", leave);
    this.#lines.on("SIGINT", () => this.#interrupt());
    this.#lines.on("line", (line) => {
      const code = this.#add(line);
      if (code !== undefined) cells.push(code);
      if (!this.#running && cells.length === 0) this.#show();
      wake();
    });
    this.#show();
    while (!over.signal.aborted || cells.length > 0) {
      const code = cells.shift();
      if (code === undefined) await new Promise<void>((resolve) => (wake = resolve));
      else if (/^\s*(exit|quit)\s*(\(\s*\))?\s*$/.test(code)) return;
      else if (code.trim() !== "") await this.#run(code, left);
      if (code !== undefined && cells.length === 0 && !over.signal.aborted) this.#show();
    }
    await this.#output.print("stdout", "\n");
  }

  /** The cell that the line completes. */
  #add(line: string): string | undefined {
    this.#typed.push(line);
    const code = this.#typed.join("\n");
    if (!isComplete(code)) return undefined;
    this.#typed = [];
    return code;
  }

  #show(): void {
    this.#lines.setPrompt(this.#typed.length === 0 ? FIRST : MORE);
    this.#lines.prompt();
  }

  /** Ctrl-C: the running cell is interrupted; at the prompt, the typed text is dropped. */
  #interrupt(): void {
    if (this.#running) return void this.#interpreter.interrupt().catch(() => {});
    this.#typed = [];
    void this.#output.print("stdout", "\nKeyboardInterrupt\n");
    this.#lines.write(null, { ctrl: true, name: "e" });
    this.#lines.write(null, { ctrl: true, name: "u" });
    this.#show();
  }

  async #run(code: string, signal: AbortSignal): Promise<void> {
    this.#running = true;
    try {
      for await (const event of this.#interpreter.stream(code, { signal })) await this.#printer.print(event);
    } catch (thrown) {
      if (signal.aborted) return;
      const { message, hint } = asSandboxerError(thrown);
      await this.#output.print("stderr", `sandboxer: ${message} ${hint}\n`);
    } finally {
      this.#running = false;
    }
  }
}

/** Typed bytes go to the editor of lines until the prompt is left. */
async function feed(io: Io, input: PassThrough, left: AbortSignal): Promise<void> {
  try {
    for await (const typed of io.stdin.bytes()) {
      if (left.aborted) return;
      input.write(typed);
    }
  } finally {
    input.end();
  }
}

/** The terminal for the editor of lines, and for output: in raw mode a line feed alone does not go back. */
class TerminalOutput extends Writable {
  readonly isTTY = true;
  readonly #io: Io;
  readonly #terminal: Terminal;

  constructor(io: Io, terminal: Terminal) {
    super({ decodeStrings: false });
    this.#io = io;
    this.#terminal = terminal;
    terminal.onResize(() => this.emit("resize"));
  }

  get columns(): number {
    return this.#terminal.size().columns;
  }

  readonly print = (to: "stdout" | "stderr", text: string): Promise<boolean> =>
    this.#io.writeBytes(to, Buffer.from(text.replaceAll(/\r?\n/g, "\r\n")));

  /** Echoes of keys: few bytes, so nobody waits for them. */
  override _write(text: string | Uint8Array, _encoding: string, done: () => void): void {
    void this.print("stdout", typeof text === "string" ? text : Buffer.from(text).toString("utf8"));
    done();
  }
}

/** Typed lines of earlier prompts, newest first. They may have secrets: only their user can read them. */
class History {
  readonly #path: string;

  constructor({ env, homeDirectory }: Io) {
    const base = env["XDG_STATE_HOME"] ?? join(homeDirectory, ".local", "state");
    this.#path = join(base, "sandboxer", "python-history");
  }

  async read(): Promise<string[]> {
    const text = await readFile(this.#path, "utf8").catch(() => "");
    return text
      .split("\n")
      .filter((line) => line !== "")
      .toReversed();
  }

  async save(lines: readonly string[]): Promise<void> {
    const text = lines.slice(0, HISTORY_LINES).toReversed().join("\n");
    // A prompt without history is still a prompt.
    await mkdir(dirname(this.#path), { recursive: true, mode: 0o700 })
      .then(() => writeFile(this.#path, `${text}\n`, { mode: 0o600 }))
      .catch(() => {});
  }
}
