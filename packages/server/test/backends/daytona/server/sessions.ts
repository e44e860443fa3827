import { randomUUID } from "node:crypto";
import type { Command, Session, SessionExecuteRequest, SessionExecuteResponse } from "@daytona/toolbox-api-client";
import type { SandboxHandle, SandboxProcess } from "../../../../src/backends/backend.ts";
import { Refusal } from "./exchange.ts";
import { SessionLog, splitLog } from "./session-log.ts";

interface RunningCommand {
  readonly id: string;
  readonly text: string;
  readonly process: SandboxProcess;
  readonly log: SessionLog;
  readonly done: Promise<void>;
  exitCode: number | undefined;
}

/** The daemon's sessions: a shell for each command, its log, its stdin. */
export class Sessions {
  readonly #handle: SandboxHandle;
  readonly #sessions = new Map<string, Map<string, RunningCommand>>();

  constructor(handle: SandboxHandle) {
    this.#handle = handle;
  }

  create(sessionId: string): void {
    if (this.#sessions.has(sessionId)) throw new Refusal(409, "session already exists", "CONFLICT");
    this.#sessions.set(sessionId, new Map());
  }

  list(): Session[] {
    return [...this.#sessions.keys()].map((sessionId) => this.describe(sessionId));
  }

  describe(sessionId: string): Session {
    const commands = [...this.#find(sessionId).values()].map((command) => describeCommand(command));
    return { sessionId, commands };
  }

  async execute(sessionId: string, request: SessionExecuteRequest): Promise<SessionExecuteResponse> {
    const session = this.#find(sessionId);
    if (request.command.trim() === "") throw new Refusal(400, "command cannot be empty");
    const process = await this.#handle.exec({ key: randomUUID(), argv: ["bash", "-c", request.command] });
    const log = new SessionLog();
    const command: RunningCommand = {
      id: randomUUID(),
      text: request.command,
      process,
      log,
      done: this.#pump(process, log).then((code) => void (command.exitCode = code)),
      exitCode: undefined,
    };
    session.set(command.id, command);
    if (request.runAsync === true || request.async === true) return { cmdId: command.id };
    await process.closeStdin().catch(() => {});
    await command.done;
    const output = log.bytes.toString("utf8");
    return { cmdId: command.id, output, ...splitLog(log.bytes), exitCode: command.exitCode ?? 1 };
  }

  command(sessionId: string, commandId: string): Command {
    return describeCommand(this.#command(sessionId, commandId));
  }

  log(sessionId: string, commandId: string): SessionLog {
    return this.#command(sessionId, commandId).log;
  }

  /** With a newline, as the daemon adds it. */
  async input(sessionId: string, commandId: string, data: string): Promise<void> {
    const { process, exitCode } = this.#command(sessionId, commandId);
    if (exitCode !== undefined)
      throw new Refusal(410, `command has already completed with exit code ${exitCode}`, "GONE");
    await process.writeStdin(Buffer.from(data.endsWith("\n") ? data : `${data}\n`));
  }

  async delete(sessionId: string): Promise<void> {
    const session = this.#find(sessionId);
    this.#sessions.delete(sessionId);
    for (const { process, exitCode } of session.values()) {
      if (exitCode === undefined) await process.signal(9, "group").catch(() => {});
    }
  }

  #find(sessionId: string): Map<string, RunningCommand> {
    const session = this.#sessions.get(sessionId);
    if (session === undefined) throw new Refusal(404, "session not found", "NOT_FOUND");
    return session;
  }

  #command(sessionId: string, commandId: string): RunningCommand {
    const command = this.#find(sessionId).get(commandId);
    if (command === undefined) throw new Refusal(404, "command not found", "NOT_FOUND");
    return command;
  }

  async #pump(process: SandboxProcess, log: SessionLog): Promise<number> {
    try {
      for await (const { stream, offset, data } of process.output()) {
        log.add(stream, data);
        process.acknowledge(offset + data.length);
      }
      const { code, signal } = await process.exited;
      return code ?? 128 + (signal ?? 0);
    } catch {
      return 1;
    } finally {
      log.end();
    }
  }
}

function describeCommand({ id, text, exitCode }: RunningCommand): Command {
  return { id, command: text, ...(exitCode === undefined ? {} : { exitCode }) };
}
