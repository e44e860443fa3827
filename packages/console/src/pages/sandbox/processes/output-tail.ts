import { signal, type ReadonlySignal } from "@preact/signals";
import type { SandboxerError } from "@sandboxer/client";
import { errorOfFields } from "@sandboxer/client/transport";
import type { ExecLine } from "@sandboxer/protocol";
import { asError, client } from "../../../session.ts";
import { OutputText, type OutputPart } from "../output-text.ts";

/** Older text is dropped from the page, not from the sandbox. */
const SHOWN_BYTES = 512 * 1024;
const LOOK_MS = 700;

export interface TailState {
  readonly parts: readonly OutputPart[];
  /** Where the text begins: later than requested if older bytes were dropped. */
  readonly begin: number | undefined;
  /** The end of what was read. */
  readonly end: number;
  readonly droppedBytes: number;
  readonly over: boolean;
  readonly error: SandboxerError | undefined;
}

/**
 * The growing output of a process. It is polled rather than followed: a process has one reader, and an open terminal on
 * it must not be disturbed.
 */
export class OutputTail {
  readonly #params: { readonly id: string; readonly process_id: string };
  readonly #text = new OutputText(SHOWN_BYTES);
  readonly #state: ReturnType<typeof signal<TailState>>;

  constructor(sandboxId: string, processId: string, from: number) {
    this.#params = { id: sandboxId, process_id: processId };
    this.#state = signal<TailState>({
      parts: [],
      begin: undefined,
      end: from,
      droppedBytes: 0,
      over: false,
      error: undefined,
    });
  }

  get state(): ReadonlySignal<TailState> {
    return this.#state as ReadonlySignal<TailState>;
  }

  /** Reads until its end, or once. */
  async run(follow: boolean, aborted: AbortSignal): Promise<void> {
    do {
      await this.#look(aborted);
      if (this.state.peek().over || !follow) return;
      await new Promise((resolve) => setTimeout(resolve, LOOK_MS));
    } while (!aborted.aborted);
  }

  async #look(aborted: AbortSignal): Promise<void> {
    if (document.visibilityState === "hidden") return;
    const query = { offset: this.state.peek().end, encoding: "base64" } as const;
    try {
      const lines = await client.transport.read(
        "processOutput",
        { params: this.#params, query },
        { signal: aborted },
        async (response) => (await response.text()).split("\n").filter((line) => line !== ""),
      );
      if (aborted.aborted) return;
      let change: Partial<TailState> = { error: undefined };
      for (const line of lines) change = { ...change, ...this.#take(JSON.parse(line) as ExecLine) };
      this.#set({ ...change, parts: this.#text.parts(), droppedBytes: this.#text.droppedBytes });
    } catch (thrown) {
      if (!aborted.aborted) this.#set({ error: asError(thrown) });
    }
  }

  #take(line: ExecLine): Partial<TailState> {
    switch (line.event) {
      case "started":
        return this.state.peek().begin === undefined ? { begin: line.offset, end: line.offset } : {};
      case "stdout":
      case "stderr":
        this.#text.push(line.event, bytesOf(line.data));
        return { end: line.offset };
      case "exit":
        return { over: true };
      case "error":
        return { error: errorOfFields(line) };
      case "end":
      case "moving":
        return {};
    }
  }

  #set(change: Partial<TailState>): void {
    this.#state.value = { ...this.state.peek(), ...change };
  }
}

function bytesOf(base64: string): Uint8Array {
  return Uint8Array.from(atob(base64), (letter) => letter.charCodeAt(0));
}
