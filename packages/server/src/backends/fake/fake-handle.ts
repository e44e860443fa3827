import { type Duplex, duplexPair } from "node:stream";
import { SandboxerError } from "@sandboxer/protocol";
import type {
  AcquireRequest,
  Capabilities,
  ExecCommand,
  ListeningPort,
  ProcessTableEntry,
  SandboxAccount,
  SandboxAccounts,
  SandboxConnection,
  SandboxEnd,
  SandboxHandle,
  SandboxProcess,
  SandboxStats,
  SnapshotOptions,
  SnapshotPayload,
} from "../backend.ts";
import type { CallOptions } from "../../support/call-options.ts";
import { FakeFiles } from "./fake-files.ts";
import { FakeProcess } from "./fake-process.ts";
import { requirementsOf, writeSnapshot } from "./fake-snapshot.ts";
import type { Faults } from "./faults.ts";
import { fromText } from "./machine/byte-string.ts";
import { FileFault } from "./machine/file-fault.ts";
import { USER_ID } from "./machine/file-node.ts";
import type { Machine } from "./machine/machine.ts";
import type { MachineProcess } from "./machine/machine-process.ts";
import { compile } from "./programs/compile.ts";
import type { EchoConnection } from "./machine/listeners.ts";

const WORKING_FOLDER = "/workspace";
const ROOT: SandboxAccount = { name: "root", uid: 0, gid: 0, home: "/root" };
const USER = { name: "user", uid: USER_ID, gid: USER_ID };
const PROCESS_BYTES = 1 << 20;
const ENVIRONMENT = {
  PATH: "/usr/local/bin:/usr/bin:/bin",
  HOME: WORKING_FOLDER,
  LANG: "C.UTF-8",
  PWD: WORKING_FOLDER,
};

export interface FakeEngine {
  readonly version: string;
  readonly capabilities: Capabilities;
  readonly faults: Faults;
  readonly services: ReadonlyMap<number, FakeService>;
}

/** Serves the connections to a port on which a process inside listens, instead of the echo. */
export type FakeService = (connection: Duplex) => void;

/** One fake sandbox as its users see it. */
export class FakeHandle implements SandboxHandle {
  readonly sandboxId: string;
  readonly files: FakeFiles;
  readonly rootFiles: FakeFiles;
  readonly #request: AcquireRequest;
  readonly #machine: Machine;
  readonly #engine: FakeEngine;
  /** One object for each process, so that its writes keep their order. */
  readonly #processes = new WeakMap<MachineProcess, FakeProcess>();

  #letGo = false;

  constructor(request: AcquireRequest, machine: Machine, engine: FakeEngine) {
    this.sandboxId = request.sandboxId;
    this.#request = request;
    this.#machine = machine;
    this.#engine = engine;
    this.files = new FakeFiles(machine);
    this.rootFiles = this.files;
  }

  async accounts(): Promise<SandboxAccounts> {
    await this.#running();
    const accounts = [ROOT, { ...USER, home: WORKING_FOLDER }];
    const find = (user: string): SandboxAccount => {
      const found = accounts.find(({ name, uid }) => user === name || user === String(uid));
      if (found === undefined) throw noUser(user);
      return found;
    };
    const nameOf = (id: number): string | undefined => accounts.find(({ uid }) => uid === id)?.name;
    return { own: find(this.#request.spec.user ?? USER.name), find, userName: nameOf, groupName: nameOf };
  }

  get ended(): Promise<SandboxEnd> {
    return this.#machine.ended;
  }

  async exec(command: ExecCommand, options: CallOptions = {}): Promise<SandboxProcess> {
    await this.#running();
    await this.#engine.faults.meet("exec", options.signal);
    await this.#running();
    const known = this.#machine.started.find((process) => process.record.key === command.key);
    if (known !== undefined) return this.#wrap(known);
    if (command.pty !== undefined && !this.#engine.capabilities.pty) throw notSupported("a terminal");
    const program = compile(command.argv);
    if (program === undefined) throw new FileFault("ENOENT").toSandboxerError(command.argv[0] ?? "");
    const workingFolder = command.workingFolder ?? WORKING_FOLDER;
    this.#checkFolder(workingFolder);
    const own = userVariables(command.user ?? this.#request.spec.user);
    const environment = { ...ENVIRONMENT, ...own, ...this.#request.spec.env, ...command.env };
    const process = this.#machine.start({
      key: command.key,
      argv: command.argv,
      program,
      environment: Object.fromEntries(Object.entries(environment).map(([name, value]) => [name, fromText(value)])),
      workingFolder,
      ...(command.pty === undefined ? {} : { terminal: command.pty }),
    });
    return this.#wrap(process);
  }

  async processes(): Promise<readonly SandboxProcess[]> {
    await this.#running();
    return this.#machine.started.map((process) => this.#wrap(process));
  }

  async processTable(): Promise<readonly ProcessTableEntry[]> {
    await this.#running();
    return this.#machine.living.map(({ pid, record }) => ({
      pid,
      parentPid: record.parentPid,
      uid: USER_ID,
      state: record.stopped ? "T" : "S",
      residentBytes: PROCESS_BYTES,
      cpuMs: Math.floor(record.instructionsRun / 1000),
      command: record.command,
    }));
  }

  async connect(port: number): Promise<SandboxConnection> {
    await this.#running();
    if (!this.#engine.capabilities.connect) throw notSupported("connections to ports inside the sandbox");
    const connection = this.#machine.listeners.connect(port);
    const serve = this.#engine.services.get(port);
    return serve === undefined
      ? new FakeConnection(connection, this.#machine)
      : new ServedConnection(connection, this.#machine, serve);
  }

  async listeningPorts(): Promise<readonly ListeningPort[]> {
    await this.#running();
    const ports = this.#machine.listeners.ports.toSorted((left, right) => left - right);
    return ports.map((port) => ({ port, address: "127.0.0.1" }));
  }

  async listen(port: number, onConnection: (connection: SandboxConnection) => void): Promise<number> {
    await this.#running();
    return this.#machine.listeners.serve(port, onConnection);
  }

  /** The state is captured at the moment of the call, before any delay of a fault; later changes are not in it. */
  async snapshot(into: string, options: SnapshotOptions): Promise<SnapshotPayload> {
    this.#alive();
    const { capabilities, faults, version } = this.#engine;
    if (options.mode === "full" ? capabilities.snapshot !== "full" : !capabilities.filesystemSnapshot) {
      throw notSupported(`${options.mode} snapshots`);
    }
    const { scheduler } = this.#machine;
    const pausedBefore = scheduler.paused;
    const stillMs = performance.now();
    scheduler.pause();
    const full = this.#machine.capture();
    const state = options.mode === "full" ? full : { ...full, processes: [], nextPid: 2, uptimeMs: 0 };
    let saved = false;
    try {
      options.onProgress?.({ phase: "saving" });
      const { damage } = await faults.meet("snapshot", options.signal);
      this.#alive();
      const requirements = requirementsOf(version, options.mode, this.#request.spec);
      const payload = await writeSnapshot(into, state, requirements, damage);
      options.signal?.throwIfAborted();
      saved = true;
      return payload;
    } finally {
      if (!pausedBefore && (options.leaveRunning || !saved)) {
        scheduler.resume();
        options.onStill?.(performance.now() - stillMs);
      }
    }
  }

  async freeze(): Promise<void> {
    this.#alive();
    await this.#engine.faults.meet("freeze");
    this.#machine.scheduler.pause();
  }

  async thaw(): Promise<void> {
    this.#alive();
    await this.#engine.faults.meet("thaw");
    this.#machine.scheduler.resume();
  }

  async ping(options: CallOptions = {}): Promise<void> {
    await this.#running(options.signal);
    await this.#engine.faults.meet("ping", options.signal);
    this.#alive();
  }

  stats(): Promise<SandboxStats> {
    return this.#attempt(() => {
      const { living, processes, files } = this.#machine;
      const logs = [...processes.values()].reduce((sum, process) => sum + process.log.keptBytes, 0);
      const run = living.reduce((sum, process) => sum + process.record.instructionsRun, 0);
      return {
        memoryBytes: living.length * PROCESS_BYTES + logs,
        diskBytes: files.usedBytes,
        cpuMs: Math.floor(run / 1000),
      };
    });
  }

  async stop(): Promise<void> {
    this.#alive();
    await this.#engine.faults.meet("stop");
    this.#machine.kept = true;
    this.#machine.finishAll({ reason: "destroyed", message: "it was stopped." });
  }

  async destroy(): Promise<void> {
    await this.#engine.faults.meet("destroy");
    this.#machine.kept = false;
    this.#machine.finishAll({ reason: "destroyed", message: "it was deleted." });
  }

  letGo(): void {
    this.#letGo = true;
  }

  #wrap(process: MachineProcess): FakeProcess {
    const known = this.#processes.get(process) ?? new FakeProcess(process, this.#machine);
    this.#processes.set(process, known);
    return known;
  }

  #checkFolder(path: string): void {
    try {
      this.#machine.files.list(path);
    } catch (thrown) {
      throw thrown instanceof FileFault ? thrown.toSandboxerError(path) : thrown;
    }
  }

  /** A frozen sandbox does not answer; a caller waits until it continues or gives up. */
  async #running(signal?: AbortSignal): Promise<void> {
    const running = this.#machine.scheduler.running();
    if (signal === undefined) return running;
    signal.throwIfAborted();
    const aborted = Promise.withResolvers<never>();
    const onAbort = (): void => aborted.reject(signal.reason as Error);
    signal.addEventListener("abort", onAbort, { once: true });
    return Promise.race([running, aborted.promise]).finally(() => signal.removeEventListener("abort", onAbort));
  }

  #alive(): void {
    if (this.#letGo) throw new SandboxerError("sandbox_failed", "This server released the sandbox.");
    if (this.#machine.end !== undefined) throw this.#machine.failure();
  }

  async #attempt<Result>(action: () => Result): Promise<Result> {
    this.#alive();
    return action();
  }
}

function notSupported(what: string): SandboxerError {
  return new SandboxerError("not_supported", `This fake backend has no ${what}.`);
}

/** A connection to a port inside, which echoes. */
class FakeConnection implements SandboxConnection {
  readonly data: AsyncIterable<Uint8Array>;
  readonly #connection: EchoConnection;
  readonly #machine: Machine;

  constructor(connection: EchoConnection, machine: Machine) {
    this.#connection = connection;
    this.#machine = machine;
    this.data = receive(connection);
  }

  async write(data: Uint8Array): Promise<void> {
    await this.#machine.scheduler.running();
    if (this.#connection.closed) throw new SandboxerError("wrong_state", "The connection is closed.");
    this.#connection.pending.push(Uint8Array.from(data));
    this.#connection.wake();
  }

  close(): Promise<void> {
    this.#machine.listeners.close(this.#connection);
    return Promise.resolve();
  }
}

/** A connection to a port inside that a test serves; it ends with its process. */
class ServedConnection implements SandboxConnection {
  readonly data: AsyncIterable<Uint8Array>;
  readonly #connection: EchoConnection;
  readonly #machine: Machine;
  readonly #stream: Duplex;

  constructor(connection: EchoConnection, machine: Machine, serve: FakeService) {
    const [outside, inside] = duplexPair();
    this.#connection = connection;
    this.#machine = machine;
    this.#stream = outside;
    this.data = outside;
    connection.wake = () => {
      outside.destroy();
      inside.destroy();
    };
    for (const side of [outside, inside]) side.on("error", () => {});
    serve(inside);
  }

  async write(data: Uint8Array): Promise<void> {
    await this.#machine.scheduler.running();
    if (this.#stream.destroyed) throw new SandboxerError("wrong_state", "The connection is closed.");
    const written = Promise.withResolvers<void>();
    this.#stream.write(Uint8Array.from(data), (error) => (error == null ? written.resolve() : written.reject(error)));
    await written.promise;
  }

  close(): Promise<void> {
    this.#machine.listeners.close(this.#connection);
    return Promise.resolve();
  }
}

async function* receive(connection: EchoConnection): AsyncGenerator<Uint8Array> {
  for (;;) {
    const next = connection.pending.shift();
    if (next !== undefined) {
      yield next;
      continue;
    }
    if (connection.closed) return;
    await new Promise<void>((resolve) => {
      connection.wake = resolve;
    });
  }
}

/** It has two users, who differ only in their variables. */
function userVariables(user = "user"): Record<string, string> {
  if (user === "user" || user === "1000") return {};
  if (user === "root" || user === "0") return { HOME: "/root", USER: "root" };
  throw noUser(user);
}

function noUser(user: string): SandboxerError {
  return new SandboxerError("bad_request", `The sandbox has no user ${JSON.stringify(user)}.`);
}
