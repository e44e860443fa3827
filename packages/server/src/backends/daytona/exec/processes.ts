import { SandboxerError } from "@sandboxer/protocol";
import type { Clock } from "../../../support/clock.ts";
import type { ExecCommand, SandboxProcess } from "../../backend.ts";
import type { ExtensionProcess } from "../../extension/extension.ts";
import { LoggedProcess, type ProcessHome } from "../../extension/logged-process.ts";
import type { Interior } from "../interior.ts";
import type { Toolbox } from "../toolbox/toolbox.ts";
import { ExecuteProcess } from "./execute-process.ts";
import { adoptBridges, type BridgeCommand, forgetBridge, startBridge } from "./start-bridge.ts";
import { TerminalProcess } from "./terminal-process.ts";

const MAX_PROCESSES = 256;

/** The processes of one sandbox, by their keys. */
export class Processes {
  readonly #toolbox: Toolbox;
  readonly #clock: Clock;
  readonly #home: Omit<ProcessHome, "forget">;
  readonly #byKey = new Map<string, Promise<LoggedProcess>>();

  constructor(toolbox: Toolbox, clock: Clock, home: Omit<ProcessHome, "forget">) {
    this.#toolbox = toolbox;
    this.#clock = clock;
    this.#home = home;
  }

  /** A known key starts nothing. */
  start(command: ExecCommand, interior: Interior, env: Readonly<Record<string, string>>): Promise<SandboxProcess> {
    const known = this.#byKey.get(command.key);
    if (known !== undefined) return known;
    if (this.#byKey.size >= MAX_PROCESSES) {
      throw new SandboxerError("limit_reached", `The sandbox already keeps ${MAX_PROCESSES} processes.`, {
        hint: "Delete the records of processes that have ended.",
      });
    }
    const starting = this.#start(command, interior, env);
    this.#byKey.set(command.key, starting);
    starting.catch(() => this.#byKey.delete(command.key));
    return starting;
  }

  async list(): Promise<readonly SandboxProcess[]> {
    const settled = await Promise.allSettled(this.#byKey.values());
    return settled.flatMap((outcome) => (outcome.status === "fulfilled" ? [outcome.value] : []));
  }

  async adopt(): Promise<void> {
    for (const { key, process } of await adoptBridges(this.#toolbox, this.#clock)) {
      this.#byKey.set(key, Promise.resolve(this.#log(key, process)));
    }
  }

  abandon(failure: SandboxerError): void {
    for (const starting of this.#byKey.values()) {
      starting.then(
        (process) => process.abandon(failure),
        () => {},
      );
    }
  }

  async #start(
    command: ExecCommand,
    { streaming, workingFolder }: Interior,
    env: Readonly<Record<string, string>>,
  ): Promise<LoggedProcess> {
    const full: BridgeCommand = {
      key: command.key,
      argv: command.argv,
      // The sandbox's own variables are inside already, unless it came from a snapshot.
      env: { ...env, ...command.env },
      workingFolder: command.workingFolder ?? workingFolder,
    };
    if (command.pty !== undefined) {
      const terminal = await TerminalProcess.start(this.#toolbox, full, command.pty);
      return this.#live(new LoggedTerminal(command.key, terminal, this.#homeOf()));
    }
    const process = streaming
      ? await startBridge(this.#toolbox, this.#clock, full)
      : new ExecuteProcess(this.#toolbox, full);
    return this.#log(command.key, process);
  }

  #log(key: string, process: ExtensionProcess): LoggedProcess {
    return this.#live(new LoggedProcess(key, process, this.#homeOf()));
  }

  /** The sandbox may have ended during the start. */
  #live(process: LoggedProcess): LoggedProcess {
    const failure = this.#home.failure();
    if (failure !== undefined) process.abandon(failure);
    return process;
  }

  #homeOf(): ProcessHome {
    return {
      ...this.#home,
      forget: (key) => {
        this.#byKey.delete(key);
        forgetBridge(this.#toolbox, this.#clock, key).catch(() => {
          // The daemon's record is removed with the sandbox.
        });
      },
    };
  }
}

class LoggedTerminal extends LoggedProcess {
  readonly #terminal: TerminalProcess;
  readonly #home: ProcessHome;

  constructor(key: string, terminal: TerminalProcess, home: ProcessHome) {
    super(key, terminal, home);
    this.#terminal = terminal;
    this.#home = home;
  }

  override async resize(rows = 0, columns = 0): Promise<void> {
    await this.#home.ready();
    await this.#terminal.resize(rows, columns);
  }
}
