import type { CallOptions } from "../../support/call-options.ts";
import type {
  ExecCommand,
  ListeningPort,
  ProcessTableEntry,
  SandboxAccounts,
  SandboxConnection,
  SandboxEnd,
  SandboxFiles,
  SandboxProcess,
} from "../backend.ts";
import type { AgentClient } from "./agent-client.ts";
import type { AgentFiles } from "./agent-files.ts";
import { readListeningPorts, withProcesses } from "./listening-ports.ts";

export const DESTROYED: SandboxEnd = { reason: "destroyed", message: "The sandbox was destroyed." };
export const OUT_OF_MEMORY: SandboxEnd = {
  reason: "out_of_memory",
  message: "The sandbox used more memory than its limit and was ended.",
};

/** The part of a handle that the agent implements, whatever the engine. */
export abstract class AgentSandbox {
  readonly #agent: AgentClient;

  constructor(agent: AgentClient) {
    this.#agent = agent;
  }

  get files(): SandboxFiles {
    return this.#agent.files;
  }

  get rootFiles(): AgentFiles {
    return this.#agent.rootFiles;
  }

  get rawFiles(): AgentFiles {
    return this.#agent.rawFiles;
  }

  accounts(): Promise<SandboxAccounts> {
    return this.#agent.users.accounts();
  }

  workspaceFolder(): Promise<string> {
    return this.#agent.users.workspaceFolder();
  }

  exec(command: ExecCommand, options?: CallOptions): Promise<SandboxProcess> {
    return this.#agent.exec(command, options);
  }

  processes(): Promise<readonly SandboxProcess[]> {
    return this.#agent.processes();
  }

  processTable(): Promise<readonly ProcessTableEntry[]> {
    return this.#agent.processTable();
  }

  connect(port: number): Promise<SandboxConnection> {
    return this.#agent.connect(port);
  }

  /** The ports of programs, without those that the agent opened for the host. */
  async listeningPorts(): Promise<readonly ListeningPort[]> {
    const ports = await readListeningPorts(this.rootFiles);
    const ofPrograms = ports.filter(({ port }) => !this.#agent.serves(port));
    if (ofPrograms.length === 0) return [];
    const list = (path: string, uid: number) => (uid === 0 ? this.rootFiles : this.files).list(path);
    return withProcesses(ofPrograms, await this.processTable(), list);
  }

  listen(port: number, onConnection: (connection: SandboxConnection) => void): Promise<number> {
    return this.#agent.listen(port, onConnection);
  }

  ping(options?: CallOptions): Promise<void> {
    return this.#agent.ping(options);
  }
}
