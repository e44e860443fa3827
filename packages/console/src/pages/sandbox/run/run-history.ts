import { signal, type ReadonlySignal } from "@preact/signals";
import type { ExitStatus, Language, OutputChunk, Sandbox, SandboxProcess, SandboxerError } from "@sandboxer/client";
import { asError } from "../../../session.ts";
import { OutputText, type OutputPart } from "../output-text.ts";

export interface RunRecord {
  readonly number: number;
  readonly language: Language;
  readonly code: string;
  readonly state: "running" | "done" | "failed";
  readonly output: readonly OutputPart[];
  /** Bytes that are no longer shown. */
  readonly droppedBytes: number;
  readonly exit: ExitStatus | undefined;
  readonly elapsedMs: number | undefined;
  readonly error: SandboxerError | undefined;
}

const KEEP_RUNS = 20;
const SHOWN_BYTES = 512 * 1024;
/** Output is drawn in batches. */
const DRAW_MS = 60;

/** Runs on this page, newest first. */
export class RunHistory {
  readonly #runs = signal<readonly RunRecord[]>([]);
  #last = 0;
  #current: { readonly process: Promise<SandboxProcess>; stopped: boolean } | undefined;

  get runs(): ReadonlySignal<readonly RunRecord[]> {
    return this.#runs;
  }

  async run(sandbox: Sandbox, language: Language, code: string, user: string | undefined): Promise<void> {
    this.#last += 1;
    const number = this.#last;
    const text = new OutputText(SHOWN_BYTES);
    const begun = performance.now();
    this.#runs.value = [
      {
        number,
        language,
        code,
        state: "running" as const,
        output: [],
        droppedBytes: 0,
        exit: undefined,
        elapsedMs: undefined,
        error: undefined,
      },
      ...this.#runs.peek().slice(0, KEEP_RUNS - 1),
    ];
    const process = sandbox.spawn({ language, code }, { stdin: "", user });
    this.#current = { process, stopped: false };
    try {
      const started = await process;
      await this.#read(started, number, text);
      this.#change(number, { state: "done", exit: started.exit });
      // Nobody else knows it, and its output is here.
      started.release().catch(() => {});
    } catch (thrown) {
      this.#change(number, { state: "failed", error: asError(thrown) });
    } finally {
      this.#current = undefined;
      this.#change(number, { ...shown(text), elapsedMs: performance.now() - begun });
    }
  }

  /** Asks it to end, then kills it. */
  async stop(): Promise<void> {
    const current = this.#current;
    if (current === undefined) return;
    const process = await current.process;
    await process.kill(current.stopped ? "SIGKILL" : "SIGTERM");
    current.stopped = true;
  }

  async #read(process: SandboxProcess, number: number, text: OutputText): Promise<void> {
    let drawn = 0;
    for await (const { stream, data } of process.chunks() as AsyncIterable<OutputChunk>) {
      text.push(stream, data);
      if (performance.now() - drawn < DRAW_MS) continue;
      this.#change(number, shown(text));
      // A flood of output must leave the page time to draw.
      await new Promise((resolve) => setTimeout(resolve, 0));
      drawn = performance.now();
    }
  }

  #change(number: number, change: Partial<RunRecord>): void {
    this.#runs.value = this.#runs.peek().map((run) => (run.number === number ? { ...run, ...change } : run));
  }
}

function shown(text: OutputText): Pick<RunRecord, "output" | "droppedBytes"> {
  return { output: text.parts(), droppedBytes: text.droppedBytes };
}
