import type { ComposePlacement } from "./placement.ts";
import { SshConnection } from "./ssh-connection.ts";

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
