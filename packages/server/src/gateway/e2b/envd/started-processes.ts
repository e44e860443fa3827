import type { ManagedProcess } from "../../../manager/processes/managed-process.ts";
import type { Sandbox } from "../../../manager/sandbox.ts";
import type { SandboxManager } from "../../../manager/sandbox-manager.ts";
import { ConnectError } from "../connect/connect-error.ts";
import type { ProcessConfig, Selector } from "./messages.ts";
import { OutputFanout } from "./output-fanout.ts";

const CHUNK_BYTES = 32 * 1024;
const TERMINAL_CHUNK_BYTES = 16 * 1024;
/** A process can still be connected to for this long after its end. */
const END_KEPT_MS = 30_000;
/** The limit for all sandboxes together; the oldest are forgotten first. */
const MAX_NOTED = 10_000;

export interface ProcessNotes {
  readonly config: ProcessConfig;
  readonly tag: string | undefined;
}

/** The facts about processes that E2B's clients started: their requests, their readers, and their ends. */
export class StartedProcesses {
  readonly #notes = new Map<string, ProcessNotes>();
  readonly #fanouts = new WeakMap<ManagedProcess, OutputFanout>();
  readonly #endedMs = new WeakMap<ManagedProcess, number>();

  note(sandbox: Sandbox, process: ManagedProcess, notes: ProcessNotes): void {
    this.#notes.set(`${sandbox.id} ${process.id}`, notes);
    for (const oldest of this.#notes.keys()) {
      if (this.#notes.size <= MAX_NOTED) break;
      this.#notes.delete(oldest);
    }
    const ended = (): void => void this.#endedMs.set(process, performance.now());
    process.exited.then(ended, ended);
  }

  /** For a process that another server started, only the command is known. */
  notesOf(sandbox: Sandbox, process: ManagedProcess): ProcessNotes {
    const [cmd = "", ...args] = process.command ?? [];
    const unknown = { config: { cmd, args, envs: {}, cwd: undefined }, tag: undefined };
    return this.#notes.get(`${sandbox.id} ${process.id}`) ?? unknown;
  }

  fanoutOf(process: ManagedProcess): OutputFanout {
    const known = this.#fanouts.get(process);
    if (known !== undefined) return known;
    const fanout = new OutputFanout(process, process.traits.pty ? TERMINAL_CHUNK_BYTES : CHUNK_BYTES);
    this.#fanouts.set(process, fanout);
    return fanout;
  }

  async running(manager: SandboxManager, sandbox: Sandbox): Promise<readonly ManagedProcess[]> {
    return (await manager.processes.list(sandbox)).filter((process) => process.running);
  }

  /** `ended`: also one that has ended a moment ago. Throws `not_found`. */
  async find(
    manager: SandboxManager,
    sandbox: Sandbox,
    selector: Selector | null | undefined,
    { ended = false }: { readonly ended?: boolean } = {},
  ): Promise<ManagedProcess> {
    const { pid = 0, tag } = selector ?? {};
    if (pid === 0 && tag == null) throw new ConnectError("invalid_argument", "The request names no process.");
    const isMeant = (process: ManagedProcess): boolean =>
      tag == null ? process.pid === pid : this.notesOf(sandbox, process).tag === tag;
    const all = (await manager.processes.list(sandbox)).filter(isMeant);
    const found =
      all.findLast((process) => process.running) ?? (ended ? all.findLast((each) => this.#isFresh(each)) : undefined);
    if (found !== undefined) return found;
    throw new ConnectError(
      "not_found",
      tag == null ? `There is no process ${pid}.` : "There is no process with this tag.",
    );
  }

  #isFresh(process: ManagedProcess): boolean {
    return performance.now() - (this.#endedMs.get(process) ?? -Infinity) <= END_KEPT_MS;
  }
}
