import { signal, type ReadonlySignal } from "@preact/signals";
import { SandboxerError, type ExitStatus, type PtySize, type Sandbox, type SandboxProcess } from "@sandboxer/client";
import { asError } from "../../../session.ts";
import { tell } from "../../../ui/toasts.tsx";
import { PtyInput } from "./pty-input.ts";
import { pauseMs, whenRunning } from "./waiting.ts";

const SIZE_SETTLE_MS = 250;

export type PtyState =
  | { readonly is: "connecting" | "attached" | "moving" | "lost" | "asleep" | "elsewhere" | "gone" }
  | { readonly is: "ended"; readonly exit: ExitStatus }
  | { readonly is: "failed"; readonly error: SandboxerError };

/** The target of a terminal's output. */
export interface PtyScreen {
  /** Resolves when there is room for more. `seenBefore`: another page has shown it, and has answered its queries. */
  show(data: Uint8Array, seenBefore: boolean): Promise<void>;
  /** The shown content is outdated. */
  clear(): void;
  /** Some output before this was dropped. */
  skipped(): void;
}

/**
 * One terminal of a sandbox. The SDK restores its connection after a cut or a move without missing or repeated bytes;
 * when it gives up (the sandbox is paused, a server is away for long), this continues from the same offset when
 * possible.
 */
export class PtySession {
  readonly id: string;
  readonly #sandbox: Sandbox;
  readonly #state = signal<PtyState>({ is: "connecting" });
  readonly #end = new AbortController();
  readonly #input = new PtyInput(() => tell("The connection was lost while you typed. Some input may be missing."));
  #process: SandboxProcess | undefined;
  #size: PtySize | undefined;
  /** The size that was sent to the process. */
  #told: PtySize | undefined;
  #telling: ReturnType<typeof setTimeout> | undefined;
  /** The end of the shown output; undefined before the beginning. */
  #shown: number | undefined;
  #again: (() => void) | undefined;

  constructor(sandbox: Sandbox, id: string) {
    this.#sandbox = sandbox;
    this.id = id;
  }

  get state(): ReadonlySignal<PtyState> {
    return this.#state;
  }

  /** Shows its output until it ends, or the user leaves it. */
  async run(screen: PtyScreen): Promise<void> {
    let failures = 0;
    while (!this.#end.signal.aborted) {
      try {
        const exit = await this.#follow(screen, () => (failures = 0));
        if (exit !== undefined) return this.#set({ is: "ended", exit });
      } catch (thrown) {
        failures += 1;
        if (this.#end.signal.aborted) return;
        if (!(await this.#recover(asError(thrown), failures))) return;
      } finally {
        this.#input.disconnected();
      }
    }
  }

  write(data: Uint8Array): void {
    this.#input.write(data);
  }

  resize(size: PtySize): void {
    this.#size = size;
    this.#tellSizeSoon();
  }

  /** Delayed: short-lived notes change the size and change it back. A moving or paused sandbox would refuse it. */
  #tellSizeSoon(): void {
    clearTimeout(this.#telling);
    this.#telling = setTimeout(() => {
      const same = this.#told?.rows === this.#size?.rows && this.#told?.columns === this.#size?.columns;
      if (!same && this.#state.peek().is === "attached") this.#tellSize();
    }, SIZE_SETTLE_MS);
  }

  #tellSize(): void {
    this.#told = this.#size;
    if (this.#size !== undefined) this.#process?.resize(this.#size).catch(() => (this.#told = undefined));
  }

  /** Takes it back from another page, or tries again. */
  retry(): void {
    this.#again?.();
  }

  /** Starts again with the buffered output: the sandbox was rewound. */
  restart(): void {
    this.#shown = undefined;
    this.#process?.detach();
  }

  /** Stops showing it; it keeps running. */
  leave(): void {
    this.#end.abort();
    this.#process?.detach();
    this.#again?.();
  }

  /** Kills it with its programs. */
  async kill(): Promise<void> {
    this.leave();
    const process = this.#process ?? (await this.#sandbox.process(this.id));
    await process.release();
  }

  async #follow(screen: PtyScreen, onProgress: () => void): Promise<ExitStatus | undefined> {
    const replay = this.#shown === undefined ? await this.#beginning(screen) : undefined;
    const process: SandboxProcess = await this.#sandbox.process(this.id, {
      offset: replay?.from ?? this.#shown,
      signal: this.#end.signal,
      onConnection: (is) => {
        if (this.#process !== process) return;
        this.#set({ is });
        if (is === "attached") this.#tellSizeSoon();
      },
    });
    if (this.#end.signal.aborted) return undefined;
    this.#process = process;
    this.#shown ??= replay?.from ?? 0;
    this.#input.connected((data) => process.write(data));
    this.#tellSize();
    for await (const { data, offset } of process.chunks()) {
      if (this.#process !== process || this.#shown === undefined) break;
      onProgress();
      // Requesting the next chunk acknowledges this one, so that a flood is no faster than the screen.
      const seen = Math.min(Math.max(0, (replay?.until ?? 0) - (offset - data.length)), data.length);
      if (seen > 0) await screen.show(data.subarray(0, seen), true);
      if (seen < data.length) await screen.show(data.subarray(seen), false);
      if (this.#shown !== undefined) this.#shown = offset;
    }
    return this.#shown === undefined ? undefined : process.exit;
  }

  /** The buffered output, and how much of it was already read. */
  async #beginning(screen: PtyScreen): Promise<{ from: number; until: number }> {
    screen.clear();
    const all = await this.#sandbox.processes({ signal: this.#end.signal });
    const record = all.find(({ id }) => id === this.id);
    if (record === undefined) throw new SandboxerError("process_not_found", "The terminal no longer exists.");
    if (record.outputStart > 0) screen.skipped();
    return { from: record.outputStart, until: record.acknowledged };
  }

  /** False: do not continue automatically. */
  async #recover(error: SandboxerError, failures: number): Promise<boolean> {
    const { signal: aborted } = this.#end;
    switch (error.code) {
      case "sandbox_in_use":
        return this.#stand({ is: "elsewhere" });
      case "process_not_found":
        this.#set({ is: "gone" });
        return false;
      case "permission_denied":
      case "bad_request":
      case "not_supported":
        return this.#stand({ is: "failed", error });
      case "unauthorized":
      case "sandbox_not_found":
      case "sandbox_destroyed":
        this.#set({ is: "failed", error });
        return false;
      case "wrong_state":
      case "lease_held":
      case "lease_lost":
        this.#set({ is: error.details["state"] === "stored" ? "asleep" : "moving" });
        await whenRunning(this.#sandbox.id, aborted);
        await pauseMs(Math.min(failures, 10) * 100, aborted);
        return true;
      default:
        this.#set({ is: "lost" });
        await pauseMs(Math.min(250 * 2 ** failures, 5_000), aborted);
        return true;
    }
  }

  /** Waits until the user wants it again. */
  async #stand(state: PtyState): Promise<boolean> {
    this.#set(state);
    await new Promise<void>((resolve) => (this.#again = resolve));
    this.#again = undefined;
    if (this.#end.signal.aborted) return false;
    this.#set({ is: "connecting" });
    return true;
  }

  #set(state: PtyState): void {
    if (!this.#end.signal.aborted) this.#state.value = state;
  }
}
