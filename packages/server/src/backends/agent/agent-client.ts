import { randomBytes } from "node:crypto";
import type { Readable, Writable } from "node:stream";
import { SandboxerError } from "@sandboxer/protocol";
import type { ExecCommand, ProcessExit, ProcessTableEntry, SandboxConnection } from "../backend.ts";
import type { CallOptions } from "../../support/call-options.ts";
import { AgentConnection, type RequestOptions } from "./agent-connection.ts";
import { AgentFiles } from "./agent-files.ts";
import { AgentProcess, type AgentProcessRecord } from "./agent-process.ts";
import { AgentTcp } from "./agent-tcp.ts";
import { PROTOCOL_VERSION, Request } from "./frame-types.ts";
import { PayloadWriter, type PayloadReader } from "./payload.ts";

const SpawnFlag = { pty: 1, noStdin: 2 } as const;

export interface AgentClientOptions {
  readonly user: { readonly uid: number; readonly gid: number };
  readonly env: Readonly<Record<string, string>>;
  readonly workingFolder: string;
  /** Without a frame for this long, the agent stops everything inside; 0: never. */
  readonly heartbeatMs: number;
  readonly onFailure: (error: SandboxerError) => void;
}

/** Everything that a backend asks of the agent inside its sandbox. The same for every backend that runs the agent. */
export class AgentClient {
  readonly files: AgentFiles;
  readonly rootFiles: AgentFiles;
  readonly #connection: AgentConnection;
  readonly #options: AgentClientOptions;
  readonly #processes = new Map<number, AgentProcess>();
  readonly #connections = new Map<number, AgentTcp>();

  constructor(input: Writable, output: Readable, options: AgentClientOptions) {
    this.#options = options;
    this.#connection = new AgentConnection(
      input,
      output,
      {
        output: (process, stream, offset, data) => this.#processes.get(process)?.onOutput(stream, offset, data),
        exit: (process, code, signal, end) => this.#processes.get(process)?.onExit(toExit(code, signal, end)),
        connectionData: (connection, data) => this.#connections.get(connection)?.onData(data),
        connectionClosed: (connection, errno) => {
          this.#connections.get(connection)?.onClosed(errno);
          this.#connections.delete(connection);
        },
      },
      (error) => this.#onFailure(error),
    );
    this.files = new AgentFiles(this.#connection, "user");
    this.rootFiles = new AgentFiles(this.#connection, "root");
  }

  /** First words with a fresh agent. */
  async start(options: RequestOptions = {}): Promise<void> {
    await withTimeout(this.#connection.ready, options.timeoutMs ?? 30_000, "The agent inside did not start");
    await this.#hello(options);
  }

  /**
   * First words with an agent that came out of an image: it learns that it is a new incarnation, and which of its
   * processes it brought along becomes known here.
   */
  async restored(generation: number, hostname: string, options: RequestOptions = {}): Promise<void> {
    const payload = new PayloadWriter().u64(generation).string(hostname).string(randomBytes(16).toString("hex"));
    await this.#connection.request(Request.restored, payload.bytes(randomBytes(64)), options);
    await this.#hello(options);
    await this.#listProcesses();
  }

  async ping(options: CallOptions & { timeoutMs?: number } = {}): Promise<void> {
    const nonce = randomBytes(8);
    const reply = await this.#connection.request(Request.ping, new PayloadWriter().bytes(nonce), options);
    if (!reply.rest().equals(nonce)) this.fail(new SandboxerError("sandbox_failed", "The agent answered another ping."));
  }

  async exec(command: ExecCommand, options: CallOptions = {}): Promise<AgentProcess> {
    if (command.argv.length === 0) throw new SandboxerError("bad_request", "There is no command to run.");
    const environment = Object.entries({ ...this.#options.env, ...command.env });
    const { user } = this.#options;
    const payload = new PayloadWriter()
      .u8(command.pty === undefined ? 0 : SpawnFlag.pty)
      .u16(command.pty?.rows ?? 0)
      .u16(command.pty?.columns ?? 0);
    payload.u32(user.uid).u32(user.gid).string(command.key).string(command.workingFolder ?? this.#options.workingFolder);
    payload.u32(command.argv.length);
    for (const argument of command.argv) payload.string(withoutNul(argument));
    payload.u32(environment.length);
    for (const [name, value] of environment) payload.string(withoutNul(`${name}=${value}`));
    let started: AgentProcess | undefined;
    const onReply = (reply: PayloadReader): void => {
      const [process, pid] = [reply.u32(), reply.u32()];
      const existed = reply.u8() === 1 && this.#processes.has(process);
      // Registered before the next frame is looked at, which may already be its exit.
      if (!existed) this.#track({ process, pid, key: command.key, acknowledged: 0, exit: undefined });
      started = this.#processes.get(process);
    };
    await this.#connection.request(Request.spawn, payload, { signal: options.signal, onReply });
    return started!;
  }

  async processes(): Promise<readonly AgentProcess[]> {
    await this.#listProcesses();
    return [...this.#processes.values()].toSorted((left, right) => left.process - right.process);
  }

  async processTable(): Promise<readonly ProcessTableEntry[]> {
    const reply = await this.#connection.request(Request.processTable, new PayloadWriter());
    return Array.from({ length: reply.u32() }, () => ({
      pid: reply.u32(),
      parentPid: reply.u32(),
      uid: reply.u32(),
      state: String.fromCharCode(reply.u8()),
      residentBytes: reply.u64(),
      cpuMs: reply.u64(),
      command: reply.string(),
    }));
  }

  async connect(port: number): Promise<SandboxConnection> {
    let tcp: AgentTcp | undefined;
    const onReply = (reply: PayloadReader): void => {
      const connection = reply.u32();
      tcp = new AgentTcp(this.#connection, connection);
      this.#connections.set(connection, tcp);
    };
    await this.#connection.request(Request.connect, new PayloadWriter().u16(port), { onReply });
    return tcp!;
  }

  /** After this the agent is silent and its pipes are empty, as a save needs them. */
  async quiesce(): Promise<void> {
    await this.#connection.request(Request.quiesce, new PayloadWriter());
  }

  async resume(): Promise<void> {
    await this.#connection.request(Request.resume, new PayloadWriter());
  }

  async freezeProcesses(): Promise<void> {
    await this.#connection.request(Request.freeze, new PayloadWriter());
  }

  async thawProcesses(): Promise<void> {
    await this.#connection.request(Request.thaw, new PayloadWriter());
  }

  /** Kills everything inside but the agent. */
  async killAll(): Promise<void> {
    await this.#connection.request(Request.signal, new PayloadWriter().u32(0).u32(9).u8(2));
  }

  fail(error: SandboxerError): void {
    this.#connection.fail(error);
  }

  async #hello(options: RequestOptions): Promise<void> {
    const payload = new PayloadWriter().u32(PROTOCOL_VERSION).u32(this.#options.heartbeatMs);
    const version = (await this.#connection.request(Request.hello, payload, options)).u32();
    if (version === PROTOCOL_VERSION) return;
    const message = `The agent inside speaks protocol ${version}; this server speaks ${PROTOCOL_VERSION}.`;
    throw new SandboxerError("image_incompatible", message);
  }

  async #listProcesses(): Promise<Map<number, number>> {
    const logStarts = new Map<number, number>();
    const onReply = (reply: PayloadReader): void => {
      for (let left = reply.u32(); left > 0; left--) {
        const [process, pid] = [reply.u32(), reply.u32()];
        const exited = reply.u8() === 1;
        reply.u8();
        const [code, signal] = [reply.i32(), reply.i32()];
        const [logStart, acknowledged, logEnd] = [reply.u64(), reply.u64(), reply.u64()];
        const key = reply.string();
        logStarts.set(process, logStart);
        const exit = exited ? toExit(code, signal, logEnd) : undefined;
        if (!this.#processes.has(process)) this.#track({ process, pid, key, acknowledged, exit });
      }
      for (const process of this.#processes.keys()) if (!logStarts.has(process)) this.#processes.delete(process);
    };
    await this.#connection.request(Request.processes, new PayloadWriter(), { onReply });
    return logStarts;
  }

  #track(record: AgentProcessRecord): void {
    const process = new AgentProcess(this.#connection, record, {
      logStart: async (number) => (await this.#listProcesses()).get(number) ?? 0,
      forget: (number) => this.#processes.delete(number),
    });
    this.#processes.set(record.process, process);
  }

  #onFailure(error: SandboxerError): void {
    for (const process of this.#processes.values()) process.onConnectionFailed(error);
    for (const connection of this.#connections.values()) connection.onClosed(0);
    this.#options.onFailure(error);
  }
}

function toExit(code: number, signal: number, outputEnd: number): ProcessExit {
  return { code: signal === 0 ? code : undefined, signal: signal === 0 ? undefined : signal, outputEnd };
}

function withoutNul(value: string): string {
  if (value.includes("\0")) throw new SandboxerError("bad_request", "An argument or variable cannot contain NUL.");
  return value;
}

async function withTimeout(promise: Promise<void>, timeoutMs: number, what: string): Promise<void> {
  let timer: NodeJS.Timeout | undefined;
  const late = new Promise<never>((_, reject) => {
    timer = setTimeout(() => reject(new SandboxerError("timeout", `${what} within ${timeoutMs} ms.`)), timeoutMs);
  });
  try {
    await Promise.race([promise, late]);
  } finally {
    clearTimeout(timer);
  }
}
