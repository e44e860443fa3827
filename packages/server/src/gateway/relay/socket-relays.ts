import type { IncomingMessage } from "node:http";
import type { Duplex } from "node:stream";
import { asSandboxerError } from "@sandboxer/protocol";
import type { RequestKeys } from "../../manager/encryption.ts";
import type { SandboxManager } from "../../manager/sandbox-manager.ts";
import type { Credentials } from "../../manager/token.ts";
import type { Actor } from "../access/actor.ts";
import { proofFor } from "../access/encryption-proof.ts";
import type { KeyWatch } from "../access/key-watch.ts";
import type { PeerSecret } from "../access/peer-secret.ts";
import { refuseWith } from "../websocket/refusal.ts";
import { ServerWatch, type IsAlive } from "./server-watch.ts";
import { relaySocket } from "./socket-relay.ts";

/** A request for a WebSocket that may be relayed. */
export interface RelayableAttach {
  /** For the audit log. */
  readonly what: "attach" | "attach_process";
  readonly sandboxId: string;
  readonly credentials: Credentials;
  /** The request to the other server: with its query, without the permission to relay. */
  readonly path: string;
  readonly authorization: string | undefined;
  readonly encryption: RequestKeys;
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
  readonly #secret: () => PeerSecret | undefined;
  readonly #serverWatch: ServerWatch;
  readonly #clients = new Set<Duplex>();

  constructor(keyWatch: KeyWatch, isAlive: IsAlive, secret: () => PeerSecret | undefined) {
    this.#keyWatch = keyWatch;
    this.#secret = secret;
    this.#serverWatch = new ServerWatch(isAlive);
  }

  /** False: the sandbox is not on another server that could be asked, and the socket was not touched. */
  async pass(manager: SandboxManager, actor: Actor, attach: RelayableAttach, upgrade: Upgrade): Promise<boolean> {
    const { what, sandboxId, credentials, path, authorization, encryption } = attach;
    const gone = new AbortController();
    upgrade.socket.once("close", () => gone.abort());
    // If the owner is unknown, this server serves the client and reports the reason.
    const server = await manager
      .untilArrived(sandboxId, gone.signal)
      .then(() => manager.ownerElsewhere(sandboxId, credentials))
      .catch(() => undefined);
    if (server === undefined) return false;
    const { request, socket: client, head, onAgreed } = upgrade;
    // Nobody would notice its end any more.
    if (client.destroyed) return true;
    this.#clients.add(client);
    const proved = { method: "GET", url: path };
    const proofs = { ...this.#secret()?.relayedHeaders(proved), ...proofFor(encryption, proved) };
    try {
      const { over } = await actor.does(what, { sandboxId }, () =>
        relaySocket({ server, path, headers: request.headers, authorization, proofs, client, head }),
      );
      onAgreed();
      this.#keyWatch.add({ actor, gone: gone.signal, sendAway: () => client.destroy() });
      client.once(
        "close",
        this.#serverWatch.add(server.instanceId, () => client.destroy()),
      );
      await over;
    } catch (thrown) {
      const error = asSandboxerError(thrown);
      // The owner may have died: this server asks the store for the sandbox.
      if (what === "attach" && error.details["reached"] === false && !client.destroyed) return false;
      refuseWith(client, error);
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
