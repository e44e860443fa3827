import { randomUUID } from "node:crypto";
import type { PtyCreateRequest, PtySessionInfo } from "@daytona/toolbox-api-client";
import type { WebSocket } from "ws";
import type { SandboxHandle, SandboxProcess } from "../../../../src/backends/backend.ts";
import { Refusal } from "./exchange.ts";

interface Terminal {
  info: PtySessionInfo;
  readonly process: SandboxProcess;
}

/** The daemon's terminals: a shell on each. */
export class Terminals {
  readonly #handle: SandboxHandle;
  readonly #terminals = new Map<string, Terminal>();

  constructor(handle: SandboxHandle) {
    this.#handle = handle;
  }

  async create(request: PtyCreateRequest): Promise<string> {
    const { id = randomUUID(), rows = 24, cols = 80, cwd = "/workspace", envs = {} } = request;
    if (this.#terminals.has(id)) throw new Refusal(409, "PTY session already exists", "CONFLICT");
    const pty = { rows, columns: cols };
    const command = { key: randomUUID(), argv: ["bash"], pty, env: envs, workingFolder: cwd };
    const process = await this.#handle.exec(command);
    const createdAt = new Date().toISOString();
    const info = { id, rows, cols, cwd, envs, active: true, lazyStart: false, createdAt };
    this.#terminals.set(id, { info, process });
    return id;
  }

  list(): PtySessionInfo[] {
    return [...this.#terminals.values()].map(({ info }) => info);
  }

  describe(id: string): PtySessionInfo {
    return this.#find(id).info;
  }

  async resize(id: string, rows: number, cols: number): Promise<PtySessionInfo> {
    const terminal = this.#find(id);
    await terminal.process.resize(rows, cols);
    terminal.info = { ...terminal.info, rows, cols };
    return terminal.info;
  }

  async delete(id: string): Promise<void> {
    await this.#find(id).process.signal(9, "group");
    this.#terminals.delete(id);
  }

  /** Bytes both ways, then the exit code as the reason of the close. */
  async connect(id: string, socket: WebSocket): Promise<void> {
    const { process } = this.#find(id);
    socket.send(JSON.stringify({ type: "control", status: "connected" }));
    socket.on("message", (data: Buffer) => void process.writeStdin(data).catch(() => {}));
    try {
      for await (const { offset, data } of process.output()) {
        socket.send(data);
        process.acknowledge(offset + data.length);
      }
      const { code, signal } = await process.exited;
      const exitCode = code ?? 128 + (signal ?? 0);
      socket.close(exitCode === 0 ? 1000 : 1011, JSON.stringify({ exitCode }));
    } catch {
      socket.terminate();
    }
  }

  #find(id: string): Terminal {
    const terminal = this.#terminals.get(id);
    if (terminal === undefined) throw new Refusal(404, "PTY session not found", "NOT_FOUND");
    return terminal;
  }
}
