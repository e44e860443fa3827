import { signal, type ReadonlySignal } from "@preact/signals";
import type {
  CellResult,
  CellStatus,
  ContextLanguage,
  ExitStatus,
  Language,
  OutputChunk,
  Sandbox,
  SandboxerError,
} from "@sandboxer/client";
import { asError } from "../../../session.ts";
import { OutputText, type OutputPart } from "../output-text.ts";

/** Code as a program of its own, or as a cell of its language's interpreter, whose variables persist. */
export type RunRequest =
  | { readonly as: "program"; readonly language: Language; readonly code: string; readonly user: string | undefined }
  | { readonly as: "cell"; readonly language: ContextLanguage; readonly code: string };

export interface RunRecord {
  readonly number: number;
  readonly request: RunRequest;
  readonly state: "running" | "done" | "failed";
  readonly output: readonly OutputPart[];
  /** Bytes that are no longer shown. */
  readonly droppedBytes: number;
  /** The results of a cell. */
  readonly results: readonly CellResult[];
  /** The end of a program. */
  readonly exit: ExitStatus | undefined;
  /** The end of a cell. */
  readonly status: CellStatus | undefined;
  readonly elapsedMs: number | undefined;
  readonly error: SandboxerError | undefined;
}

const KEEP_RUNS = 20;
const SHOWN_BYTES = 512 * 1024;
const SHOWN_RESULTS = 50;
/** Output is drawn in batches. */
const DRAW_MS = 60;

/** Runs on this page, newest first. */
export class RunHistory {
  readonly #runs = signal<readonly RunRecord[]>([]);
  #last = 0;
  /** Asks the running code to end; the second time it is killed. */
  #end: ((again: boolean) => Promise<void>) | undefined;
  #stopped = false;

  get runs(): ReadonlySignal<readonly RunRecord[]> {
    return this.#runs;
  }

  async run(sandbox: Sandbox, request: RunRequest): Promise<void> {
    this.#last += 1;
    const number = this.#last;
    const text = new OutputText(SHOWN_BYTES);
    const begun = performance.now();
    this.#runs.value = [
      {
        number,
        request,
        state: "running" as const,
        output: [],
        droppedBytes: 0,
        results: [],
        exit: undefined,
        status: undefined,
        elapsedMs: undefined,
        error: undefined,
      },
      ...this.#runs.peek().slice(0, KEEP_RUNS - 1),
    ];
    this.#stopped = false;
    try {
      if (request.as === "cell") await this.#runCell(sandbox, request, number, text);
      else await this.#runProgram(sandbox, request, number, text);
    } catch (thrown) {
      this.#change(number, { state: "failed", error: asError(thrown) });
    } finally {
      this.#end = undefined;
      this.#change(number, { ...shown(text), elapsedMs: performance.now() - begun });
    }
  }

  async stop(): Promise<void> {
    await this.#end?.(this.#stopped);
    this.#stopped = true;
  }

  async #runProgram(
    sandbox: Sandbox,
    { language, code, user }: Extract<RunRequest, { as: "program" }>,
    number: number,
    text: OutputText,
  ): Promise<void> {
    const process = sandbox.spawn({ language, code }, { stdin: "", user });
    this.#end = async (again) => (await process).kill(again ? "SIGKILL" : "SIGTERM");
    const started = await process;
    const draw = this.#drawer(number, text);
    for await (const { stream, data } of started.chunks() as AsyncIterable<OutputChunk>) {
      text.push(stream, data);
      await draw();
    }
    this.#change(number, { state: "done", exit: started.exit });
    // Nobody else knows it, and its output is here.
    started.release().catch(() => {});
  }

  async #runCell(
    sandbox: Sandbox,
    { language, code }: Extract<RunRequest, { as: "cell" }>,
    number: number,
    text: OutputText,
  ): Promise<void> {
    const interpreter = sandbox.interpreter({ language });
    this.#end = async (again) => void (await (again ? interpreter.restart() : interpreter.interrupt()));
    const encoder = new TextEncoder();
    const draw = this.#drawer(number, text);
    const results: CellResult[] = [];
    for await (const event of interpreter.stream(code)) {
      if (event.type === "stdout" || event.type === "stderr") text.push(event.type, encoder.encode(event.text));
      else if (event.type === "error") text.push("stderr", encoder.encode(event.error.traceback));
      else if (event.type === "end") this.#change(number, { state: "done", status: event.status });
      else if (event.type === "result" && results.length < SHOWN_RESULTS) {
        results.push(event.result);
        this.#change(number, { results: [...results] });
      }
      await draw();
    }
  }

  /** A flood of output must leave the page time to draw, and the last output before a silence must be shown too. */
  #drawer(number: number, text: OutputText): () => Promise<void> {
    let drawn = 0;
    let later: ReturnType<typeof setTimeout> | undefined;
    const draw = (): void => {
      clearTimeout(later);
      later = undefined;
      this.#change(number, shown(text));
      drawn = performance.now();
    };
    return async () => {
      if (performance.now() - drawn < DRAW_MS) {
        later ??= setTimeout(draw, DRAW_MS);
        return;
      }
      draw();
      await new Promise((resolve) => setTimeout(resolve, 0));
    };
  }

  #change(number: number, change: Partial<RunRecord>): void {
    this.#runs.value = this.#runs.peek().map((run) => (run.number === number ? { ...run, ...change } : run));
  }
}

function shown(text: OutputText): Pick<RunRecord, "output" | "droppedBytes"> {
  return { output: text.parts(), droppedBytes: text.droppedBytes };
}
