import { type ChildProcessWithoutNullStreams, spawn } from "node:child_process";
import { mkdtemp, rm } from "node:fs/promises";
import { join } from "node:path";
import { SandboxerError } from "@sandboxer/protocol";
import { shellCommand } from "../../support/shell-quote.ts";
import type { ComposePlacement } from "./placement.ts";
import { connectionError } from "./ssh-errors.ts";

/** ssh's own failures; a command that itself exits with this code looks the same. */
export const SSH_FAILED = 255;

/** Not `StrictHostKeyChecking`: the user's known hosts decide whom to trust, and BatchMode never asks. */
const OPTIONS = [
  "BatchMode=yes",
  "ConnectTimeout=10",
  "ServerAliveInterval=5",
  "ServerAliveCountMax=3",
  "ControlMaster=auto",
  // A killed server leaves no connection for longer than this.
  "ControlPersist=60",
  "LogLevel=ERROR",
  "RequestTTY=no",
  "ForwardAgent=no",
  "ForwardX11=no",
  "ClearAllForwardings=yes",
  "EscapeChar=none",
];

/** One host, reached by the system's ssh over one connection that all commands share. */
export class SshConnection {
  readonly placement: ComposePlacement;
  readonly #folder: string;

  private constructor(placement: ComposePlacement, folder: string) {
    this.placement = placement;
    this.#folder = folder;
  }

  /** The socket of the shared connection is in a private folder. */
  static async open(placement: ComposePlacement, temporaryDirectory: string): Promise<SshConnection> {
    return new SshConnection(placement, await mkdtemp(join(temporaryDirectory, "sbx-ssh-")));
  }

  /** The same connection, for another base folder or engine on that host. */
  at(placement: ComposePlacement): SshConnection {
    return new SshConnection(placement, this.#folder);
  }

  /** Starts a command there; its streams are the child's. */
  start(argv: readonly string[]): ChildProcessWithoutNullStreams {
    return this.#spawn(["-T", "--", this.placement.host, shellCommand(argv)]);
  }

  /** Whether the shared connection stands. */
  async stands(): Promise<boolean> {
    return (await this.#control("check")) === 0;
  }

  async close(): Promise<void> {
    await this.#control("exit");
    await rm(this.#folder, { recursive: true, force: true });
  }

  failure(stderr: string): SandboxerError {
    return connectionError(this.placement, stderr);
  }

  #control(command: "check" | "exit"): Promise<number | null> {
    const child = this.#spawn(["-O", command, "--", this.placement.host]);
    child.stdin.on("error", () => {}).end();
    child.stdout.resume();
    child.stderr.resume();
    return new Promise((resolve) => {
      child.once("error", () => resolve(null));
      child.once("close", resolve);
    });
  }

  #spawn(args: readonly string[]): ChildProcessWithoutNullStreams {
    const { user, port, identity_file: identity, known_hosts_file: knownHosts } = this.placement;
    const options = [
      ...OPTIONS,
      `ControlPath=${this.#folder}/c`,
      ...(identity === undefined ? [] : ["IdentitiesOnly=yes"]),
      ...(knownHosts === undefined ? [] : [`UserKnownHostsFile="${knownHosts}"`, "GlobalKnownHostsFile=/dev/null"]),
    ].flatMap((option) => ["-o", option]);
    return spawn("ssh", [
      ...options,
      ...(identity === undefined ? [] : ["-i", identity]),
      ...(user === undefined ? [] : ["-l", user]),
      ...(port === undefined ? [] : ["-p", String(port)]),
      ...args,
    ]);
  }
}

/** The system has no ssh, or it cannot be started. */
export function sshMissing(cause: unknown): SandboxerError {
  return new SandboxerError("backend_unavailable", "ssh is not installed on this machine.", {
    cause,
    hint: "Install OpenSSH's client (apt-get install openssh-client).",
  });
}

/** One shared connection for each host, user, port and key. */
export class ConnectionPool {
  readonly #temporaryDirectory: string;
  readonly #connections = new Map<string, Promise<SshConnection>>();

  constructor(temporaryDirectory: string) {
    this.#temporaryDirectory = temporaryDirectory;
  }

  get(placement: ComposePlacement): Promise<SshConnection> {
    const { host, user, port, identity_file: identity, known_hosts_file: knownHosts } = placement;
    const key = JSON.stringify([host, user, port, identity, knownHosts]);
    const known = this.#connections.get(key);
    if (known !== undefined) return known.then((connection) => connection.at(placement));
    const opening = SshConnection.open(placement, this.#temporaryDirectory);
    this.#connections.set(key, opening);
    opening.catch(() => this.#connections.delete(key));
    return opening;
  }

  async close(): Promise<void> {
    const connections = [...this.#connections.values()];
    this.#connections.clear();
    await Promise.allSettled(connections.map(async (opening) => (await opening).close()));
  }
}
