import type { EventOptions } from "./events.ts";
import { Interpreter, type InterpreterOptions } from "./interpreter/interpreter.ts";
import { Execution } from "./process/execution.ts";
import type { SandboxProcess } from "./process/process.ts";
import { Processes, type AttachProcessOptions, type PtyOptions } from "./processes.ts";
import type { Command, ExecOptions, SpawnOptions } from "./process/start.ts";
import type {
  AcquireTier,
  Carried,
  EventRecord,
  ListeningPort,
  PortLink,
  ProcessRecord,
  ProcessTableEntry,
  Reachability,
  SandboxRecord,
  SandboxStats,
  SandboxUsage,
} from "./records.ts";
import { SandboxCalls } from "./sandbox-calls.ts";
import { SandboxFiles } from "./sandbox-files.ts";
import type { SandboxHandleOptions } from "./long-call.ts";
import type { Sandboxer } from "./sandboxer.ts";
import type { CallOptions } from "./wire/call-types.ts";
import { fromWire } from "./wire/naming.ts";

/** A handle on a sandbox: its operations and facts. */
export class SandboxHandle {
  readonly id: string;
  /** Returned once, at the creation. Anyone who has it can attach. */
  readonly token: string | undefined;
  /** How `acquire` got it. */
  readonly tier: AcquireTier | undefined;
  /** The parts that `restore` and `move` kept. */
  readonly carried: Carried | undefined;
  readonly client: Sandboxer;
  readonly files: SandboxFiles;
  protected readonly calls: SandboxCalls;
  readonly #processes: Processes;
  #record: SandboxRecord;

  constructor(
    client: Sandboxer,
    record: SandboxRecord & { readonly token?: string; readonly tier?: AcquireTier; readonly carried?: Carried },
    options: SandboxHandleOptions = {},
  ) {
    const { token, tier, carried, ...rest } = record;
    this.tier = tier;
    this.carried = carried;
    this.client = client;
    this.id = record.id;
    this.token = token;
    this.#record = rest;
    this.calls = new SandboxCalls(client.transport, this.id, options);
    this.files = new SandboxFiles(this.calls);
    this.#processes = new Processes(this.calls, token, options);
  }

  /** The last record from the server; `refresh` reads it again. */
  get record(): SandboxRecord {
    return this.#record;
  }

  async refresh(options: CallOptions = {}): Promise<SandboxRecord> {
    return this.note(fromWire(await this.client.call("getSandbox", { params: { id: this.id } }, options)));
  }

  /** Runs a shell line, an argv, or code. Await it for the collected result, or iterate over its lines or bytes. */
  exec(command: Command, options: ExecOptions = {}): Execution {
    return new Execution(this.#processes.start(command, options), options);
  }

  /** Starts a process and returns it, without reading its output. */
  async spawn(command: Command, options: SpawnOptions = {}): Promise<SandboxProcess> {
    return this.#processes.start(command, options);
  }

  /** Starts a process in a terminal; a shell by default. */
  async pty(options: PtyOptions = {}): Promise<SandboxProcess> {
    return this.#processes.pty(options);
  }

  /** Attaches to a process that runs or has run, from an offset; default: unread output. */
  async process(id: string, options: AttachProcessOptions = {}): Promise<SandboxProcess> {
    return this.#processes.attach(id, options);
  }

  /** Runs code in interpreters that keep their variables: between cells, and when the sandbox is paused or forked. */
  interpreter(options: InterpreterOptions = {}): Interpreter {
    return new Interpreter(this.calls, options);
  }

  /** Processes that were started over HTTP, oldest first. */
  async processes(options: CallOptions = {}): Promise<ProcessRecord[]> {
    return fromWire((await this.calls.call("listProcesses", this.target, options)).items);
  }

  /** All processes inside. */
  async processTable(options: CallOptions = {}): Promise<ProcessTableEntry[]> {
    return fromWire((await this.calls.call("processTable", this.target, options)).items);
  }

  /** The ports on which programs inside listen, with their URLs. */
  async ports(options: CallOptions = {}): Promise<ListeningPort[]> {
    return fromWire((await this.calls.call("listPorts", this.target, options)).items);
  }

  /** A URL that opens a port in a browser without a key, for an hour or until `expires`. It resumes a paused sandbox. */
  async portUrl(
    port: number,
    { expires, ...options }: CallOptions & { readonly expires?: string } = {},
  ): Promise<PortLink> {
    const input = { ...this.target, body: { port, ...(expires === undefined ? {} : { expires }) } };
    return fromWire(await this.client.call("createPortLink", input, options));
  }

  /** Ends all URLs of {@link portUrl} for a port. Open connections stay. */
  async withdrawPortUrls(port: number, options: CallOptions = {}): Promise<void> {
    await this.calls.call("withdrawPortLinks", { ...this.target, query: { port } }, options);
  }

  /** Its current memory, disk and CPU use. */
  async stats(options: CallOptions = {}): Promise<SandboxStats> {
    return fromWire(await this.calls.call("sandboxStats", this.target, options));
  }

  /**
   * Its resource usage in the last half hour, in columns of equal length, and its limits. `since`: seconds since 1970.
   */
  async usage({ since, ...options }: CallOptions & { readonly since?: number } = {}): Promise<SandboxUsage> {
    const query = since === undefined ? {} : { since };
    return fromWire(await this.calls.call("sandboxUsage", { ...this.target, query }, options));
  }

  /** Checks whether it answers, and how fast. */
  async reachability(options: CallOptions = {}): Promise<Reachability> {
    return fromWire(await this.client.call("reachability", this.target, options));
  }

  /** Its events as they happen. */
  events(options: Omit<EventOptions, "sandboxId"> = {}): AsyncGenerator<EventRecord, void, undefined> {
    return this.client.events({ ...options, sandboxId: this.id });
  }

  protected get target(): { params: { id: string } } {
    return { params: { id: this.id } };
  }

  protected note(record: SandboxRecord): SandboxRecord {
    this.#record = record;
    return record;
  }
}
