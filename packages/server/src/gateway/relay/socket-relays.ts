import type { IncomingMessage } from "node:http";
import type { Duplex } from "node:stream";
import { asSandboxerError } from "@sandboxer/protocol";
import type { SandboxManager } from "../../manager/sandbox-manager.ts";
import type { Credentials } from "../../manager/token.ts";
import type { Actor } from "../access/actor.ts";
import type { KeyWatch } from "../access/key-watch.ts";
import { refuseWith } from "../websocket/refusal.ts";
import { ServerWatch, type IsAlive } from "./server-watch.ts";
import { relaySocket } from "./socket-relay.ts";

/** A request for a process's WebSocket whose client allows relaying. */
export interface RelayableAttach {
  readonly sandboxId: string;
  readonly credentials: Credentials;
  /** The request to the other server: with its query, without the permission to relay. */
  readonly path: string;
  readonly authorization: string | undefined;
}

export interface Upgrade {
  readonly request: IncomingMessage;
  readonly socket: Duplex;
  readonly head: Buffer;
  /** The other server serves the client. */
  readonly onAgreed: () => void;
}

/** The WebSockets that this server relays to the servers that own the sandboxes. */
export class SocketRelays {
  readonly #keyWatch: KeyWatch;
  readonly #serverWatch: ServerWatch;
  readonly #clients = new Set<Duplex>();

  constructor(keyWatch: KeyWatch, isAlive: IsAlive) {
    this.#keyWatch = keyWatch;
    this.#serverWatch = new ServerWatch(isAlive);
  }

  /** False: the sandbox is not on another server that could be asked, and the socket was not touched. */
  async pass(manager: SandboxManager, actor: Actor, attach: RelayableAttach, upgrade: Upgrade): Promise<boolean> {
    const { sandboxId, credentials, path, authorization } = attach;
    // If the owner is unknown, this server serves the client and reports the reason.
    const server = await manager.ownerElsewhere(sandboxId, credentials).catch(() => undefined);
    if (server === undefined) return false;
    const { request, socket: client, head, onAgreed } = upgrade;
    // Nobody would notice its end any more.
    if (client.destroyed) return true;
    const gone = new AbortController();
    this.#clients.add(client);
    try {
      const { over } = await actor.does("attach_process", { sandboxId }, () =>
        relaySocket({ server, path, headers: request.headers, authorization, client, head }),
      );
      onAgreed();
      this.#keyWatch.add({ actor, gone: gone.signal, sendAway: () => client.destroy() });
      client.once(
        "close",
        this.#serverWatch.add(server.instanceId, () => client.destroy()),
      );
      await over;
    } catch (error) {
      refuseWith(client, asSandboxerError(error));
    } finally {
      gone.abort();
      this.#clients.delete(client);
    }
    return true;
  }

  close(): void {
    for (const client of this.#clients) client.destroy();
  }
}
