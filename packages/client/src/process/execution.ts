import type { OutputChunk } from "./frames.ts";
import type { OutputLine } from "./lines.ts";
import type { ExecResult, PtySize, SandboxProcess } from "./process.ts";

export interface ExecutionOptions {
  readonly maxOutputBytes?: number | undefined;
}

/**
 * A started command. Awaited, it is its collected result; before that, you can iterate over its output instead, write
 * to it and kill it. It is a {@link SandboxProcess} that need not be awaited first.
 */
export class Execution implements PromiseLike<ExecResult> {
  /** Settles when the process has started. */
  readonly process: Promise<SandboxProcess>;
  readonly #options: ExecutionOptions;
  #result: Promise<ExecResult> | undefined;

  constructor(process: Promise<SandboxProcess>, options: ExecutionOptions) {
    this.process = process;
    this.#options = options;
    // The awaiting caller gets it; nobody has to await.
    process.catch(() => {});
  }

  /** Reads everything to the end, as `await` does. */
  result(): Promise<ExecResult> {
    this.#result ??= this.process.then((process) => process.collect(this.#options));
    return this.#result;
  }

  // oxlint-disable-next-line promise/prefer-await-to-then
  then<Value = ExecResult, Failure = never>(
    onResult?: ((result: ExecResult) => Value | PromiseLike<Value>) | null,
    onError?: ((error: unknown) => Failure | PromiseLike<Failure>) | null,
  ): Promise<Value | Failure> {
    return this.result().then(onResult, onError);
  }

  async *chunks(): AsyncGenerator<OutputChunk, void, undefined> {
    yield* (await this.process).chunks();
  }

  async *lines(stream?: OutputChunk["stream"]): AsyncGenerator<string, void, undefined> {
    yield* (await this.process).lines(stream);
  }

  async *outputLines(): AsyncGenerator<OutputLine, void, undefined> {
    yield* (await this.process).outputLines();
  }

  async write(data: string | Uint8Array): Promise<void> {
    await (await this.process).write(data);
  }

  async closeStdin(): Promise<void> {
    (await this.process).closeStdin();
  }

  async kill(signal?: string | number): Promise<void> {
    await (await this.process).kill(signal);
  }

  async resize(size: PtySize): Promise<void> {
    await (await this.process).resize(size);
  }

  async detach(): Promise<{ readonly id: string; readonly offset: number }> {
    return (await this.process).detach();
  }
}
