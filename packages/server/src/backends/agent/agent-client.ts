import { randomBytes } from "node:crypto";
import type { Readable, Writable } from "node:stream";
import { SandboxerError } from "@sandboxer/protocol";
import type { ExecCommand, OutputBounds, ProcessTableEntry, SandboxConnection } from "../backend.ts";
import type { CallOptions } from "../../support/call-options.ts";
import { errnoOf } from "./agent-error.ts";
import { AgentConnection, type RequestOptions } from "./agent-connection.ts";
import { AgentFiles } from "./agent-files.ts";
import { AgentProcess, type AgentProcessRecord } from "./agent-process.ts";
import { AgentTcp } from "./agent-tcp.ts";
import { AgentWatches } from "./agent-watches.ts";
import type { Account } from "./accounts.ts";
import { SandboxUsers, variablesOf, type UserOptions } from "./sandbox-users.ts";
import { PROTOCOL_VERSION, Request } from "./frame-types.ts";
import { readProcess, readProcessTable, toExit } from "./process-replies.ts";
import { putGroups, spawnPayload } from "./spawn-payload.ts";
import { within } from "./within.ts";
import { MalformedFrameError, PayloadWriter, type PayloadReader } from "./payload.ts";

const ENOSYS = 38;

/** Heartbeats in the time after which the agent misses them. */
const BEATS = 4;

/** The answer of an agent that does not know a field of a request. */
const EBADMSG = 74;

export interface AgentClientOptions {
  readonly users: UserOptions;
  /** The variables of every program; those of the user and of the sandbox override them. */
  readonly baseEnv: Readonly<Record<string, string>>;
  readonly env: Readonly<Record<string, string>>;
  /** Without a frame for this long, the agent stops everything inside; 0: never. */
  readonly heartbeatMs: number;
  readonly onFailure: (error: SandboxerError) => void;
  /** The agent has ended. The owner then calls {@link AgentClient.fail} with the reason. */
  readonly onEnd: () => void;
  /** Called right before each frame that is sent. */
  readonly beforeFrame?: () => void;
  /** Whether output chunks stay valid, or share memory with the next one. */
  readonly chunksLast: boolean;
}

/** All requests of a backend to the agent in its sandbox. The same for every backend that runs the agent. */
export class AgentClient {
  readonly files: AgentFiles;
  readonly rootFiles: AgentFiles;
  /** As root, with names of any bytes. */
  readonly rawFiles: AgentFiles;
  readonly users: SandboxUsers;
  readonly #connection: AgentConnection;
  readonly #options: AgentClientOptions;
  #env: Readonly<Record<string, string>>;
  readonly #processes = new Map<number, AgentProcess>();
  readonly #connections = new Map<number, AgentTcp>();
  readonly #watches: AgentWatches;
  /** By port. */
  readonly #listeners = new Map<number, (connection: SandboxConnection) => void>();
  #heart: NodeJS.Timeout | undefined;

  constructor(input: Writable, output: Readable, options: AgentClientOptions) {
    this.#options = options;
    this.#env = options.env;
    this.#connection = new AgentConnection(
      input,
      output,
      {
        output: (process, stream, offset, data) => this.#processes.get(process)?.onOutput(stream, offset, data),
        exit: (process, code, signal, end) => this.#processes.get(process)?.onExit(toExit(code, signal, end)),
        connectionData: (connection, data) => this.#connections.get(connection)?.onData(data),
        connectionClosed: (connection, errno) => this.#connections.get(connection)?.onClosed(errno),
        connectionAccepted: (connection, port) => this.#onAccepted(connection, port),
        change: (watch, flags, name) => this.#watches.onChange(watch, flags, name),
      },
      {
        onFailure: (error) => this.#onFailure(error),
        onEnd: () => options.onEnd(),
        beforeFrame: options.beforeFrame,
        chunksLast: options.chunksLast,
      },
    );
    this.#watches = new AgentWatches(this.#connection);
    this.files = new AgentFiles(this.#connection, "user", { watches: this.#watches });
    this.rootFiles = new AgentFiles(this.#connection, "root", { watches: this.#watches });
    this.rawFiles = new AgentFiles(this.#connection, "root", { names: "latin1" });
    this.users = new SandboxUsers(this.rootFiles, options.users);
  }

  /** The first exchange with a fresh agent; `resyncToken`: what later hosts must know (`resync.ts`). */
  async start(options: RequestOptions & { readonly resyncToken?: string | undefined } = {}): Promise<void> {
    const late = new SandboxerError("timeout", `The agent inside did not start within ${options.timeoutMs ?? 0} ms.`);
    await within(this.#connection.ready, { ...options, late });
    await this.#hello(options);
    const { resyncToken: token } = options;
    if (token === undefined) return;
    await this.#connection.request(Request.resyncToken, new PayloadWriter().bytes(Buffer.from(token)), options);
  }

  /**
   * The first exchange with a restored agent: it learns that it is a new incarnation, and reports the processes that it
   * brought along.
   */
  async restored(generation: number, hostname: string, options: RequestOptions = {}): Promise<void> {
    const payload = new PayloadWriter().u64(generation).string(hostname).string(randomBytes(16).toString("hex"));
    const restored = this.#connection.request(Request.restored, payload.bytes(randomBytes(64)), options);
    await Promise.all([restored, this.#hello(options), this.#listProcesses(options)]);
  }

  /** Assigns a pooled fresh agent to a sandbox. */
  async become(hostname: string, options: RequestOptions = {}): Promise<void> {
    // Like an agent that was started for it: it was not restored, and has no machine id yet.
    const payload = new PayloadWriter().u64(0).string(hostname).string("").bytes(randomBytes(64));
    await this.#connection.request(Request.restored, payload, options);
  }

  /** The sandbox's user, for file requests that are not root's and for the program that runs after a restore. */
  async becomeUser({ uid, gid, groups }: Account, folder: string, options: RequestOptions = {}): Promise<void> {
    const payload = putGroups(new PayloadWriter().u32(uid).u32(gid), groups).string(folder);
    await this.#connection.request(Request.user, payload, options);
  }

  /** For processes that are started from now on. */
  useEnvironment(env: Readonly<Record<string, string>>): void {
    this.#env = env;
  }

  /** The first exchange with an agent that another host has left, once it follows this one (`resync.ts`). */
  async rejoined(options: RequestOptions = {}): Promise<void> {
    await Promise.all([this.#hello(options), this.#listProcesses(options)]);
  }

  async ping(options: CallOptions & { timeoutMs?: number } = {}): Promise<void> {
    const nonce = randomBytes(8);
    const check = (reply: PayloadReader): void => {
      if (!reply.rest().equals(nonce)) throw new MalformedFrameError("the reply to another ping");
    };
    await this.#connection.ask(Request.ping, new PayloadWriter().bytes(nonce), check, options);
  }

  async exec(command: ExecCommand, options: CallOptions = {}): Promise<AgentProcess> {
    if (command.argv.length === 0) throw new SandboxerError("bad_request", "No command was given.");
    const { baseEnv } = this.#options;
    const place = this.users.place(command.user);
    // Without a wait where nothing has to be read: calls are then sent in their order.
    const { account, folder } = place instanceof Promise ? await place : place;
    const workingFolder = command.workingFolder ?? folder;
    const env = { ...baseEnv, ...variablesOf(account, baseEnv), ...this.#env, ...command.env };
    const payload = spawnPayload({ ...command, workingFolder, env }, account, this.users.gainsRights);
    const started = await this.#connection
      .ask(Request.spawn, payload, (reply) => this.#readSpawned(reply, command.key), { signal: options.signal })
      .catch((error: unknown) => {
        throw errnoOf(error) === EBADMSG ? tooOld(account) : error;
      });
    if (typeof started !== "number") return started;
    // It was started by a call that gave up before the reply, so it is unknown here.
    await this.#listProcesses();
    const found = this.#processes.get(started);
    if (found === undefined) throw new SandboxerError("process_not_found", "The process with this key has ended.");
    return found;
  }

  /** Registered before the next frame is processed, which may already be its exit. */
  #readSpawned(reply: PayloadReader, key: string): AgentProcess | number {
    const [process, pid, existed] = [reply.u32(), reply.u32(), reply.u8() === 1];
    const known = this.#processes.get(process);
    if (existed) return known ?? process;
    if (known !== undefined) throw new MalformedFrameError("a new process has the number of another one");
    return this.#track({ process, pid, key, acknowledged: 0, exit: undefined });
  }

  async processes(): Promise<readonly AgentProcess[]> {
    await this.#listProcesses();
    return [...this.#processes.values()].toSorted((left, right) => left.process - right.process);
  }

  async processTable(options: RequestOptions = {}): Promise<readonly ProcessTableEntry[]> {
    return this.#connection.ask(Request.processTable, new PayloadWriter(), readProcessTable, options);
  }

  /** When the sandbox was last used or sent something; monotonic. */
  get usedMs(): number {
    return this.#connection.usedMs;
  }

  /** Whether something runs, as far as known here; leftovers of exited processes are not known. */
  get busy(): boolean {
    if (this.#connection.busy || this.#connections.size > 0) return true;
    for (const process of this.#processes.values()) if (process.exit === undefined) return true;
    return false;
  }

  async connect(port: number): Promise<SandboxConnection> {
    if (!Number.isInteger(port) || port < 1 || port > 65_535) {
      throw new SandboxerError("bad_request", `${port} is not a port; ports are 1 to 65535.`);
    }
    return this.#connection.ask(Request.connect, new PayloadWriter().u16(port), (reply) => this.#trackTcp(reply.u32()));
  }

  /** See `SandboxHandle.listen`. */
  async listen(port: number, onConnection: (connection: SandboxConnection) => void): Promise<number> {
    const opened = (reply: PayloadReader): number => {
      const open = reply.u16();
      // Before the next frame, which may already be a connection.
      this.#listeners.set(open, onConnection);
      return open;
    };
    try {
      return await this.#connection.ask(Request.listen, new PayloadWriter().u16(port), opened);
    } catch (error) {
      throw errnoOf(error) === ENOSYS ? cannotListen(error) : error;
    }
  }

  /** Whether the agent listens on this port for the host. */
  serves(port: number): boolean {
    return this.#listeners.has(port);
  }

  #onAccepted(connection: number, port: number): void {
    const onConnection = this.#listeners.get(port);
    if (onConnection === undefined) throw new MalformedFrameError("a connection to a port that nobody asked for");
    onConnection(this.#trackTcp(connection));
  }

  #trackTcp(connection: number): AgentTcp {
    if (this.#connections.has(connection)) throw new MalformedFrameError("a new connection has the number of another");
    const tcp = new AgentTcp(this.#connection, connection, () => this.#connections.delete(connection));
    this.#connections.set(connection, tcp);
    return tcp;
  }

  /** After this the agent is silent and its pipes are empty, as a save needs them. */
  async quiesce(): Promise<void> {
    // A silent agent counts no time, and data in its pipe would be in the image.
    this.stopBeating();
    await this.#connection.request(Request.quiesce, new PayloadWriter());
  }

  async resume(): Promise<void> {
    await this.#connection.request(Request.resume, new PayloadWriter());
    this.beat();
  }

  /** Stops everything inside except the agent, which keeps answering; returns how many processes that were. */
  freezeProcesses(): Promise<number> {
    return this.#connection.ask(Request.freeze, new PayloadWriter(), (reply) => reply.u32());
  }

  async thawProcesses(): Promise<void> {
    await this.#connection.request(Request.thaw, new PayloadWriter());
  }

  /** Kills everything inside except the agent. */
  async killAll(): Promise<void> {
    await this.#connection.request(Request.signal, new PayloadWriter().u32(0).u32(9).u8(2));
  }

  get failure(): SandboxerError | undefined {
    return this.#connection.failure;
  }

  fail(error: SandboxerError): void {
    this.#connection.fail(error);
  }

  async #hello(options: RequestOptions): Promise<void> {
    this.beat();
    const payload = new PayloadWriter().u32(PROTOCOL_VERSION).u32(this.#options.heartbeatMs);
    const readVersion = (reply: PayloadReader): number => {
      const version = reply.u32();
      reply.u64();
      return version;
    };
    const version = await this.#connection.ask(Request.hello, payload, readVersion, options);
    if (version === PROTOCOL_VERSION) return;
    const message = `The agent inside speaks protocol ${version}; this server speaks ${PROTOCOL_VERSION}.`;
    throw new SandboxerError("image_incompatible", message);
  }

  /** Keeps the agent from considering its host dead. */
  beat(): void {
    const { heartbeatMs } = this.#options;
    if (heartbeatMs === 0 || this.#heart !== undefined) return;
    this.#heart = setInterval(() => this.#sendBeat(), heartbeatMs / BEATS);
    this.#heart.unref();
  }

  /** After a break: the first one at once, because the agent may have missed them already. */
  goOnBeating(): void {
    this.beat();
    if (this.#heart !== undefined) this.#sendBeat();
  }

  #sendBeat(): void {
    this.#connection.send(Request.ping, new PayloadWriter(), { unasked: true });
  }

  /** Whether it did. */
  stopBeating(): boolean {
    const didBeat = this.#heart !== undefined;
    clearInterval(this.#heart);
    this.#heart = undefined;
    return didBeat;
  }

  /** Reads the process list; returns where the log of each begins and ends. */
  #listProcesses(options: RequestOptions = {}): Promise<Map<number, OutputBounds>> {
    return this.#connection.ask(Request.processes, new PayloadWriter(), (reply) => this.#readProcesses(reply), options);
  }

  #readProcesses(reply: PayloadReader): Map<number, OutputBounds> {
    const logs = new Map<number, OutputBounds>();
    for (const { bounds, ...record } of reply.list(() => readProcess(reply))) {
      logs.set(record.process, bounds);
      if (!this.#processes.has(record.process)) this.#track(record);
    }
    for (const [number, process] of this.#processes) {
      if (logs.has(number)) continue;
      process.onConnectionFailed(new SandboxerError("process_not_found", "The process has ended."));
      this.#processes.delete(number);
    }
    return logs;
  }

  #track(record: AgentProcessRecord): AgentProcess {
    const process = new AgentProcess(this.#connection, record, {
      bounds: async (number) => {
        const bounds = (await this.#listProcesses()).get(number);
        if (bounds === undefined) throw new SandboxerError("process_not_found", "The process has ended.");
        return bounds;
      },
      forget: (number) => this.#processes.delete(number),
    });
    this.#processes.set(record.process, process);
    return process;
  }

  #onFailure(error: SandboxerError): void {
    this.stopBeating();
    for (const process of this.#processes.values()) process.onConnectionFailed(error);
    for (const connection of this.#connections.values()) connection.onClosed(0);
    this.#watches.onFailure();
    this.#options.onFailure(error);
  }
}

function tooOld({ name }: Account): SandboxerError {
  return new SandboxerError(
    "not_supported",
    `This sandbox was created by an earlier release and cannot run as ${name}.`,
    {
      hint: "Create a new sandbox. A resumed sandbox keeps the agent that it was created with.",
    },
  );
}

function cannotListen(cause: unknown): SandboxerError {
  return new SandboxerError(
    "not_supported",
    "This sandbox was created by an earlier release and cannot reach the network through this server.",
    { cause, hint: "Create a new sandbox, or set its network to none. A resumed sandbox keeps its agent." },
  );
}
