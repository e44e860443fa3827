import type { Readable } from "node:stream";
import { setTimeout as delay } from "node:timers/promises";
import { SandboxerError } from "@sandboxer/protocol";
import type { OutputBounds, OutputChunk, ProcessExit, SandboxProcess } from "../backend.ts";
import { SerialQueue } from "../../support/serial-queue.ts";
import { OutputLog, type OutputStream } from "../output/output-log.ts";
import type { ExtensionProcess } from "./extension.ts";

const MAX_SIGNAL = 64;
/** More than the pipes between a process and this server hold. */
const MAX_ASIDE_BYTES = 64 << 20;
/** A log that is full only for a moment is no reason to watch a process. */
const WATCH_AFTER_MS = 250;
const RETRY_MS = 1000;

/** The part of its sandbox that a process uses. */
export interface ProcessHome {
  /** Waits while the sandbox is paused; throws once it has ended. */
  ready(): Promise<void>;
  failure(): SandboxerError | undefined;
  forget(key: string): void;
}

/** A process of an extension as its users see it: with a bounded log of its output in this server. */
export class LoggedProcess implements SandboxProcess {
  readonly key: string;
  readonly pid: number;
  readonly exited: Promise<ProcessExit>;
  readonly #process: ExtensionProcess;
  readonly #home: ProcessHome;
  readonly #log = new OutputLog();
  readonly #stdin = new SerialQueue();
  readonly #ending = Promise.withResolvers<ProcessExit>();
  #exit: ProcessExit | undefined;
  #lost: unknown;
  /** Aborted when nobody needs to know the end of the process any more. */
  readonly #over = new AbortController();
  #watching = false;
  #ended = false;

  constructor(key: string, process: ExtensionProcess, home: ProcessHome) {
    this.key = key;
    this.pid = process.pid;
    this.#process = process;
    this.#home = home;
    this.exited = this.#ending.promise;
    this.exited.catch(() => {});
    // Errors of a broken pipe reach the writer through its own call.
    process.stdin.on("error", () => {});
    void this.#run();
  }

  get acknowledged(): number {
    return this.#log.acknowledged;
  }
  get exit(): ProcessExit | undefined {
    return this.#exit;
  }

  output(options: { readonly from?: number; readonly signal?: AbortSignal } = {}): AsyncIterable<OutputChunk> {
    return this.#log.follow(options, { failure: () => this.#home.failure() ?? this.#lost });
  }

  async bounds(): Promise<OutputBounds> {
    const { end, keptBytes } = this.#log;
    return { start: end - keptBytes, end };
  }

  acknowledge(offset: number): void {
    this.#log.acknowledge(offset);
    this.#log.notify();
  }

  writeStdin(data: Uint8Array): Promise<void> {
    return this.#stdin.run(async () => {
      await this.#home.ready();
      if (this.#exit !== undefined) throw new SandboxerError("wrong_state", `Process ${this.pid} has exited.`);
      const { stdin } = this.#process;
      if (stdin.writableEnded) throw closed(this.pid);
      await new Promise<void>((resolve, reject) => {
        stdin.write(data, (error) => (error ? reject(this.#home.failure() ?? closed(this.pid, error)) : resolve()));
      });
    });
  }

  closeStdin(): Promise<void> {
    return this.#stdin.run(async () => {
      await this.#home.ready();
      this.#process.stdin.end();
    });
  }

  async signal(signal: number, scope: "process" | "group"): Promise<void> {
    await this.#home.ready();
    if (!Number.isInteger(signal) || signal < 0 || signal > MAX_SIGNAL) {
      throw new SandboxerError("bad_request", `There is no signal ${signal}.`);
    }
    if (this.#exit !== undefined) return;
    await this.#process.signal(signal, scope);
  }

  async resize(): Promise<void> {
    await this.#home.ready();
    throw new SandboxerError("bad_request", `Process ${this.pid} has no terminal.`);
  }

  async release(): Promise<void> {
    await this.#home.ready();
    if (this.#exit === undefined && this.#lost === undefined) {
      throw new SandboxerError("wrong_state", `Process ${this.pid} is still running.`);
    }
    this.#home.forget(this.key);
  }

  /** The sandbox has ended: readers and waiters are informed. */
  abandon(failure: SandboxerError): void {
    this.#ending.reject(failure);
    this.#over.abort();
    this.#process.abandon();
    this.#log.notify();
  }

  async #run(): Promise<void> {
    const { stdout, stderr, exited } = this.#process;
    try {
      const [end] = await Promise.all([exited, this.#pump("stdout", stdout), this.#pump("stderr", stderr)]);
      this.#log.finish();
      this.#exit = { code: end.code, signal: end.signal, outputEnd: this.#log.end };
      this.#ending.resolve(this.#exit);
    } catch (thrown) {
      this.#lost = thrown;
      this.#ending.reject(thrown);
      this.#log.notify();
    } finally {
      this.#over.abort();
    }
  }

  /**
   * No faster than the log has room: the stream, and so the process, waits. The remaining output of an ended process is
   * set aside; if that is too much, some child still prints, and waits like any other.
   */
  async #pump(name: OutputStream, stream: Readable): Promise<void> {
    const aside: Uint8Array[] = [];
    let asideBytes = 0;
    for await (const data of stream as AsyncIterable<Uint8Array>) {
      const isTooMuch = asideBytes >= MAX_ASIDE_BYTES;
      if (isTooMuch) for (const each of aside.splice(0)) await this.#append(name, each, false);
      const left = aside.length > 0 ? data : await this.#append(name, data, !isTooMuch);
      if (isTooMuch) continue;
      if (left.length > 0) aside.push(left);
      asideBytes += left.length;
    }
    for (const data of aside) await this.#append(name, data, false);
  }

  /** Returns the rest if the sandbox, or with `mayStop` the process, ended before there was room. */
  async #append(name: OutputStream, data: Uint8Array, mayStop: boolean): Promise<Uint8Array> {
    let left = data;
    for (;;) {
      left = left.subarray(this.#log.append(name, left));
      if (left.length === 0 || this.#home.failure() !== undefined) return left;
      if (await this.#roomOrEnd(mayStop)) return left;
    }
  }

  /** Waits for room; true if the process has ended, even meanwhile. */
  async #roomOrEnd(mayStop: boolean): Promise<boolean> {
    if (mayStop && this.#ended) return true;
    const changed = this.#log.changed();
    if (mayStop && !this.#watching && this.#process.untilEnded !== undefined) {
      const room = new AbortController();
      const full = delay(WATCH_AFTER_MS, true, { signal: room.signal, ref: false }).catch(() => false);
      if (await Promise.race([full, changed])) void this.#watch();
      room.abort();
    }
    await changed;
    return mayStop && this.#ended;
  }

  /** From the first time that the log is full until the process has ended. Waiters for room are informed. */
  async #watch(): Promise<void> {
    if (this.#watching || this.#process.untilEnded === undefined) return;
    this.#watching = true;
    const { signal } = this.#over;
    while (!signal.aborted && !this.#ended) {
      try {
        await this.#home.ready();
        await this.#process.untilEnded(signal);
        this.#ended = true;
        this.#log.notify();
      } catch {
        await delay(RETRY_MS, undefined, { signal, ref: false }).catch(() => {});
      }
    }
  }
}

function closed(pid: number, cause?: unknown): SandboxerError {
  return new SandboxerError("wrong_state", `The stdin of process ${pid} is closed.`, { cause });
}
