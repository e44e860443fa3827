import { once } from "node:events";
import { PassThrough, type Writable } from "node:stream";
import { SandboxerError } from "@sandboxer/protocol";
import { SerialQueue } from "../../../support/serial-queue.ts";
import type { Clock } from "../../../support/clock.ts";
import type { ExtensionProcess } from "../../extension/extension.ts";
import { vendorStatus } from "../daytona-errors.ts";
import type { Toolbox } from "../toolbox/toolbox.ts";
import type { Socket } from "../toolbox/socket.ts";
import { BridgeDecoder, type BridgeEvent, type Exit } from "./bridge-decoder.ts";
import { CREDIT_BYTES } from "./bridge-script.ts";
import { promisedWritable } from "./promised-writable.ts";
import { runScript } from "./shell-script.ts";

const INLINE_BYTES = 4096;
const PIECE_BYTES = 1 << 20;
const GRANT_BYTES = CREDIT_BYTES / 2;
const RECONNECT_MS = 500;
const GRANT_VERBS = { stdout: "a", stderr: "b" } as const;

/** A program in a session, through the bridge. Its log is read from its beginning, again after a lost connection. */
export class BridgeProcess implements ExtensionProcess {
  readonly stdout = new PassThrough();
  readonly stderr = new PassThrough();
  readonly stdin: Writable;
  readonly exited: Promise<Exit>;
  readonly #toolbox: Toolbox;
  readonly #clock: Clock;
  readonly #place: { readonly sessionId: string; readonly commandId: string };
  readonly #decoder = new BridgeDecoder();
  readonly #input = new SerialQueue();
  readonly #started = Promise.withResolvers<void>();
  readonly #ending = Promise.withResolvers<Exit>();
  readonly #read = { stdout: 0, stderr: 0 };
  readonly #granted = { stdout: CREDIT_BYTES, stderr: CREDIT_BYTES };
  #pid = 0;
  #folder = "";
  #pieces = 0;
  #taken: PromiseWithResolvers<void> | undefined;
  #exit: Exit | undefined;
  #finished = false;
  #abandoned = false;
  #socket: Socket | undefined;

  private constructor(toolbox: Toolbox, clock: Clock, place: { sessionId: string; commandId: string }) {
    this.#toolbox = toolbox;
    this.#clock = clock;
    this.#place = place;
    this.exited = this.#ending.promise;
    this.exited.catch(() => {});
    this.#started.promise.catch(() => {});
    // Readers get the error; before that, `open` does.
    for (const stream of [this.stdout, this.stderr]) stream.on("error", () => {});
    this.stdin = promisedWritable(
      (chunk) => this.#feed(chunk),
      () => this.#command("c"),
    );
  }

  /** Resolves once the program runs; a missing one is `file_not_found`. */
  static async open(
    toolbox: Toolbox,
    clock: Clock,
    place: { readonly sessionId: string; readonly commandId: string },
  ): Promise<BridgeProcess> {
    const process = new BridgeProcess(toolbox, clock, place);
    void process.#follow();
    await process.#started.promise;
    return process;
  }

  get pid(): number {
    return this.#pid;
  }

  async signal(signal: number, scope: "process" | "group"): Promise<void> {
    await sendSignal(this.#toolbox, this.#pid, signal, scope);
  }

  abandon(): void {
    this.#abandoned = true;
    this.#socket?.close();
    this.#taken?.reject(lost());
    this.#started.reject(lost());
    for (const stream of [this.stdout, this.stderr, this.stdin]) stream.destroy();
  }

  async #follow(): Promise<void> {
    let position = 0;
    try {
      while (!this.#finished && !this.#abandoned) {
        const { sessionId, commandId } = this.#place;
        this.#socket = await this.#toolbox.followLog(sessionId, commandId);
        let at = 0;
        for await (const { data } of this.#socket.messages()) {
          const fresh = data.subarray(Math.max(0, position - at));
          at += data.length;
          for (const event of this.#decoder.push(fresh)) await this.#handle(event);
          position = Math.max(position, at);
          if (this.#finished) break;
        }
        if (!this.#finished && !this.#abandoned) await this.#reconsider();
      }
    } catch (thrown) {
      this.#fail(thrown);
    } finally {
      this.#socket?.close();
    }
  }

  /** The connection ended before the program's output: it is followed again, unless the session is over. */
  async #reconsider(): Promise<void> {
    const { sessionId, commandId } = this.#place;
    const { exitCode } = await this.#toolbox.command(sessionId, commandId);
    if (typeof exitCode === "number") {
      throw new SandboxerError("sandbox_failed", `The session of process ${this.#pid} ended with code ${exitCode}.`);
    }
    await this.#clock.sleep(RECONNECT_MS);
  }

  async #handle(event: BridgeEvent): Promise<void> {
    switch (event.kind) {
      case "missing":
        this.#finished = true;
        this.#started.reject(new SandboxerError("file_not_found", `The ${missing(event.what)} does not exist.`));
        break;
      case "started":
        this.#pid = event.pid;
        this.#folder = event.folder;
        this.#started.resolve();
        break;
      case "output":
        await this.#pass(event.stream, event.data);
        break;
      case "taken":
        this.#taken?.resolve();
        break;
      case "exited":
        this.#exit = event;
        break;
      case "finished":
        this.#finish();
    }
  }

  /** Waits for the reader; only then more may be sent. */
  async #pass(name: "stdout" | "stderr", data: Buffer): Promise<void> {
    const stream = this[name];
    if (stream.destroyed) return;
    if (!stream.write(data)) await Promise.race([once(stream, "drain"), once(stream, "close")]).catch(() => {});
    this.#read[name] += data.length;
    const next = this.#read[name] + CREDIT_BYTES;
    if (next - this.#granted[name] < GRANT_BYTES) return;
    this.#granted[name] = next;
    this.#command(`${GRANT_VERBS[name]} ${next}`).catch(() => {
      // The program waits; the next call on it shows why.
    });
  }

  #finish(): void {
    this.#finished = true;
    // Confirmations come before the streams end.
    this.#taken?.reject(new SandboxerError("wrong_state", `Process ${this.#pid} has exited.`));
    this.stdout.end();
    this.stderr.end();
    this.#ending.resolve({ code: this.#exit?.code, signal: this.#exit?.signal });
    this.#command("q").catch(() => {
      // Its session is deleted when the process is released.
    });
  }

  /** Larger pieces are sent as files: a session's lines are read byte by byte inside. */
  async #feed(chunk: Buffer): Promise<void> {
    for (let at = 0; at < chunk.length; at += PIECE_BYTES) {
      const piece = chunk.subarray(at, at + PIECE_BYTES);
      if (this.#exit !== undefined) throw new SandboxerError("wrong_state", `Process ${this.#pid} has exited.`);
      this.#taken = Promise.withResolvers<void>();
      this.#taken.promise.catch(() => {});
      if (piece.length <= INLINE_BYTES) {
        await this.#command(`i ${piece.toString("base64")}`);
      } else {
        const name = `piece-${this.#pieces++}`;
        await this.#toolbox.files.upload(`${this.#folder}/${name}`, piece);
        await this.#command(`f ${name}`);
      }
      await this.#taken.promise;
    }
  }

  #command(line: string): Promise<void> {
    const { sessionId, commandId } = this.#place;
    return this.#input.run(() => this.#toolbox.sendInput(sessionId, commandId, `${line}\n`));
  }

  #fail(thrown: unknown): void {
    const gone = vendorStatus(thrown) === 404;
    const error = gone ? new SandboxerError("process_not_found", "The session of the process has ended.") : thrown;
    this.#started.reject(error);
    this.#ending.reject(error);
    this.#taken?.reject(error);
    this.stdout.destroy(error as Error);
    this.stderr.destroy(error as Error);
  }
}

/** A process that has ended does not need it. */
export async function sendSignal(
  toolbox: Toolbox,
  pid: number,
  signal: number,
  scope: "process" | "group",
): Promise<void> {
  await runScript(toolbox, `kill -s "$1" -- "$2" 2>/dev/null || kill "-$1" -- "$2"`, [
    String(signal),
    scope === "group" ? `-${pid}` : String(pid),
  ]);
}

function missing(what: "folder" | "program"): string {
  return what === "folder" ? "working folder" : "program";
}

function lost(): SandboxerError {
  return new SandboxerError("sandbox_failed", "The connection to the process was closed.");
}
