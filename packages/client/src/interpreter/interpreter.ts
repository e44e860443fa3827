import type { ContextLanguage } from "@sandboxer/protocol";
import type { InterpreterContext } from "../records.ts";
import type { SandboxCalls } from "../sandbox-calls.ts";
import type { CallOptions } from "../wire/call-types.ts";
import { fromWire } from "../wire/naming.ts";
import { cellEvents, type MovedCell } from "./cell-lines.ts";
import type { CellError, CellEvent, CellExecution, CellResult } from "./cell-types.ts";

export interface InterpreterOptions {
  /** The language of cells without a context. Default: python. */
  readonly language?: ContextLanguage | undefined;
  /** The context of all its cells: an id. Default: the default context of the language. */
  readonly context?: string | undefined;
}

export interface ContextOptions extends CallOptions {
  /** Default: the interpreter's. */
  readonly language?: ContextLanguage | undefined;
  /** The folder that it starts in. Default: the sandbox's. */
  readonly cwd?: string | undefined;
}

export interface RunCellOptions extends CallOptions, InterpreterOptions {
  /** Variables for this cell only. */
  readonly env?: Readonly<Record<string, string>> | undefined;
  /** Seconds after which the cell is interrupted; if it does not stop, its interpreter is killed. */
  readonly timeout?: number | undefined;
  /** The effect on the cell if this client disconnects or aborts. Default: interrupt. */
  readonly onDisconnect?: "interrupt" | "keep" | undefined;
  /** Called for each event. */
  readonly onEvent?: ((event: CellEvent) => void) | undefined;
  /** How many characters of output are kept in the result; the rest is dropped. Default: 10,485,760. */
  readonly maxOutputBytes?: number | undefined;
}

const MAX_OUTPUT = 10_485_760;

/** The code interpreters of a sandbox: contexts with variables that persist between cells. */
export class Interpreter {
  readonly #calls: SandboxCalls;
  readonly #options: InterpreterOptions;

  constructor(calls: SandboxCalls, options: InterpreterOptions = {}) {
    this.#calls = calls;
    this.#options = options;
  }

  /** Runs a cell to its end. An exception of the code is in `error`; only failures of the call are thrown. */
  async run(code: string, options: RunCellOptions = {}): Promise<CellExecution> {
    const { onEvent, maxOutputBytes = MAX_OUTPUT } = options;
    const collected = new CollectedCell(maxOutputBytes);
    for await (const event of this.stream(code, options)) {
      onEvent?.(event);
      collected.add(event);
    }
    return collected.execution();
  }

  /** Runs a cell and yields its events. It is followed when its sandbox is paused or moves meanwhile. */
  async *stream(code: string, options: RunCellOptions = {}): AsyncGenerator<CellEvent, void, undefined> {
    const { signal, epoch, env, timeout, onDisconnect } = options;
    const body = {
      code,
      ...this.#target(options),
      ...(env === undefined ? {} : { env }),
      ...(timeout === undefined ? {} : { timeout }),
      ...(onDisconnect === undefined ? {} : { on_disconnect: onDisconnect }),
    };
    const response = await this.#calls.openCell(body, { signal, epoch });
    let moved = yield* cellEvents(bodyOf(response));
    while (moved !== undefined) moved = yield* await this.#follow(moved, { signal });
  }

  /** Starts an interpreter with variables of its own. */
  async createContext({ language, cwd, ...options }: ContextOptions = {}): Promise<InterpreterContext> {
    const chosen = language ?? this.#options.language;
    const body = { ...(chosen === undefined ? {} : { language: chosen }), ...(cwd === undefined ? {} : { cwd }) };
    return fromWire(await this.#calls.call("createContext", { params: this.#params, body }, options));
  }

  /** All interpreters of the sandbox, oldest first. */
  async contexts(options: CallOptions = {}): Promise<InterpreterContext[]> {
    return fromWire((await this.#calls.call("listContexts", { params: this.#params }, options)).items);
  }

  /** Starts the interpreter of a context again, without its variables. */
  async restart(context: string = this.#context, options: CallOptions = {}): Promise<InterpreterContext> {
    return fromWire(await this.#calls.call("restartContext", { params: this.#of(context) }, options));
  }

  /** Interrupts the running cell, like Ctrl-C. */
  async interrupt(context: string = this.#context, options: CallOptions = {}): Promise<void> {
    await this.#calls.call("interruptContext", { params: this.#of(context) }, options);
  }

  async deleteContext(context: string = this.#context, options: CallOptions = {}): Promise<void> {
    await this.#calls.call("deleteContext", { params: this.#of(context) }, options);
  }

  async #follow(
    { contextId, cellId, offset }: MovedCell,
    options: CallOptions,
  ): Promise<AsyncGenerator<CellEvent, MovedCell | undefined>> {
    const input = { params: { ...this.#of(contextId), cell_id: cellId }, query: offset === 0 ? {} : { offset } };
    return this.#calls.read("followCell", input, options, async (response) => cellEvents(bodyOf(response)));
  }

  #target(options: InterpreterOptions): { context_id?: string; language?: ContextLanguage } {
    if (options.context !== undefined) return { context_id: options.context };
    if (options.language !== undefined) return { language: options.language };
    const { context, language } = this.#options;
    return context === undefined ? { language: language ?? "python" } : { context_id: context };
  }

  get #context(): string {
    const { context, language = "python" } = this.#options;
    return context ?? language;
  }

  get #params(): { id: string } {
    return { id: this.#calls.sandboxId };
  }

  #of(context: string): { id: string; context_id: string } {
    return { ...this.#params, context_id: context };
  }
}

function bodyOf(response: Response): ReadableStream<Uint8Array> {
  return response.body ?? new ReadableStream({ start: (controller) => controller.close() });
}

/** Joins the events of a cell, up to a limit. */
class CollectedCell {
  readonly #texts = { stdout: [] as string[], stderr: [] as string[] };
  readonly #results: CellResult[] = [];
  #error: CellError | undefined;
  #started: Extract<CellEvent, { type: "started" }> | undefined;
  #end: Extract<CellEvent, { type: "end" }> | undefined;
  #room: number;
  #truncated = false;

  constructor(maxCharacters: number) {
    this.#room = maxCharacters;
  }

  add(event: CellEvent): void {
    if (event.type === "started") this.#started = event;
    else if (event.type === "end") this.#end = event;
    else if (event.type === "error") this.#error = event.error;
    else if (event.type === "result") {
      if (this.#takes(JSON.stringify(event.result).length)) this.#results.push(event.result);
    } else {
      const text = this.#truncated ? "" : event.text.slice(0, this.#room);
      if (text.length < event.text.length) this.#truncated = true;
      this.#room -= text.length;
      this.#texts[event.type].push(text);
    }
  }

  execution(): CellExecution {
    const end = this.#end;
    return {
      contextId: this.#started?.contextId ?? "",
      cellId: this.#started?.cellId ?? "",
      executionCount: end?.executionCount ?? 0,
      status: end?.status ?? "died",
      stdout: this.#texts.stdout.join(""),
      stderr: this.#texts.stderr.join(""),
      results: this.#results,
      text: this.#results.find(({ main }) => main)?.text,
      error: this.#error,
      truncated: this.#truncated,
      timedOut: end?.timedOut ?? false,
    };
  }

  #takes(size: number): boolean {
    const fits = !this.#truncated && size <= this.#room;
    if (fits) this.#room -= size;
    else this.#truncated = true;
    return fits;
  }
}
