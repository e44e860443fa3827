import { randomBytes, randomUUID } from "node:crypto";
import { once } from "node:events";
import { PassThrough, Readable, type Writable } from "node:stream";
import { parseObject, SandboxerError } from "@sandboxer/protocol";
import { z } from "zod";
import { shellCommand } from "../../../support/shell-quote.ts";
import type { ExtensionProcess } from "../../extension/extension.ts";
import type { Toolbox } from "../toolbox/toolbox.ts";
import type { Socket, SocketMessage } from "../toolbox/socket.ts";
import { type Exit, exitOf } from "./bridge-decoder.ts";
import { promisedWritable } from "./promised-writable.ts";
import { sendSignal } from "./bridge-process.ts";
import { type BridgeCommand, EXEC_VARIABLE } from "./start-bridge.ts";

const END_OF_FILE = Buffer.from([4]);
const ended = z.object({ exitCode: z.number().int().nullish() });
const control = z.object({ type: z.literal("control"), status: z.string(), exitCode: z.number().int().nullish() });

/**
 * A program on a terminal. Daytona's terminals run a shell, so the shell execs the program; its output until then is
 * dropped. https://www.daytona.io/docs/en/pty/
 */
export class TerminalProcess implements ExtensionProcess {
  readonly stdout = new PassThrough();
  readonly stderr = Readable.from([]);
  readonly stdin: Writable;
  readonly exited: Promise<Exit>;
  readonly #toolbox: Toolbox;
  readonly #sessionId: string;
  readonly #socket: Socket;
  readonly #mark: string;
  readonly #started = Promise.withResolvers<void>();
  readonly #ending = Promise.withResolvers<Exit>();
  #pid = 0;
  #before: Buffer | undefined = Buffer.alloc(0);

  private constructor(toolbox: Toolbox, sessionId: string, socket: Socket, mark: string) {
    this.#toolbox = toolbox;
    this.#sessionId = sessionId;
    this.#socket = socket;
    this.#mark = mark;
    this.exited = this.#ending.promise;
    this.exited.catch(() => {});
    this.stdout.on("error", () => {});
    this.stdin = promisedWritable(
      (chunk) => socket.send(chunk),
      () => socket.send(END_OF_FILE),
    );
    void this.#follow();
  }

  static async start(
    toolbox: Toolbox,
    { argv, env, workingFolder }: BridgeCommand,
    { rows, columns }: { readonly rows: number; readonly columns: number },
  ): Promise<TerminalProcess> {
    await toolbox.files.requireFolder(workingFolder);
    const mark = randomBytes(16).toString("hex");
    // A typed line may have 4095 bytes; a file has no such limit.
    const script = `/tmp/.sandboxer-${randomUUID()}`;
    const start = `rm -f ${script}\nstty sane 2>/dev/null\nprintf '\\n${mark} %s\\n' $$\nexec ${shellCommand(argv)}\n`;
    await toolbox.files.upload(script, Buffer.from(start));
    const request = { id: randomUUID(), rows, cols: columns, cwd: workingFolder };
    const envs = { TERM: "xterm-256color", ...env, [EXEC_VARIABLE]: "terminal" };
    const { sessionId } = await toolbox.createTerminal({ ...request, envs });
    try {
      const socket = await toolbox.connectTerminal(sessionId);
      const process = new TerminalProcess(toolbox, sessionId, socket, mark);
      await socket.send(Buffer.from(` exec sh ${script}\n`));
      await process.#started.promise;
      return process;
    } catch (thrown) {
      await toolbox.deleteTerminal(sessionId).catch(() => {});
      throw thrown;
    }
  }

  get pid(): number {
    return this.#pid;
  }

  resize(rows: number, columns: number): Promise<void> {
    return this.#toolbox.resizeTerminal(this.#sessionId, { rows, cols: columns });
  }

  signal(signal: number, scope: "process" | "group"): Promise<void> {
    return sendSignal(this.#toolbox, this.#pid, signal, scope);
  }

  abandon(): void {
    this.#started.reject(new SandboxerError("sandbox_failed", "The connection to the terminal was closed."));
    this.#socket.close();
    this.stdout.destroy();
  }

  async #follow(): Promise<void> {
    try {
      for await (const message of this.#socket.messages()) {
        const exit = message.binary ? undefined : exitIn(message);
        if (exit !== undefined) return this.#finish(exit);
        if (message.binary) await this.#show(message.data);
      }
      const reason = ended.safeParse(parseObject(this.#socket.end?.reason ?? ""));
      if (reason.success && typeof reason.data.exitCode === "number") return this.#finish(reason.data.exitCode);
      throw new SandboxerError("sandbox_failed", "The connection to the terminal was lost.");
    } catch (thrown) {
      this.#started.reject(thrown);
      this.#ending.reject(thrown);
      this.stdout.destroy(thrown as Error);
    } finally {
      this.#socket.close();
    }
  }

  async #show(data: Buffer): Promise<void> {
    const fresh = this.#before === undefined ? data : this.#sinceMark(Buffer.concat([this.#before, data]));
    if (fresh.length === 0 || this.stdout.destroyed) return;
    if (!this.stdout.write(fresh)) {
      await Promise.race([once(this.stdout, "drain"), once(this.stdout, "close")]).catch(() => {});
    }
  }

  /** Typed text is echoed, but the mark with a number after it is only ever printed. */
  #sinceMark(seen: Buffer): Buffer {
    const match = new RegExp(`${this.#mark} (\\d+)\\r?\\n`).exec(seen.toString("latin1"));
    this.#before = match === null ? seen : undefined;
    if (match === null) return Buffer.alloc(0);
    this.#pid = Number(match[1]);
    this.#started.resolve();
    return seen.subarray(match.index + match[0].length);
  }

  #finish(code: number): void {
    this.#started.reject(new SandboxerError("sandbox_failed", `The terminal's shell ended with code ${code}.`));
    this.stdout.end();
    this.#ending.resolve(exitOf(code));
  }
}

function exitIn({ data }: SocketMessage): number | undefined {
  const message = control.safeParse(parseObject(data.toString("utf8")));
  return message.success && message.data.status === "exited" ? (message.data.exitCode ?? undefined) : undefined;
}
