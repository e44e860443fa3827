import { SandboxerError } from "@sandboxer/protocol";
import type { Actor } from "./actor.ts";
import type { Authenticator } from "./authenticator.ts";

const LOOK_EVERY_MS = 1_000;

/** A client that came with a key. */
export interface Watched {
  readonly actor: Pick<Actor, "who">;
  /** Aborts when the client disconnects. */
  readonly gone: AbortSignal;
  sendAway(error: SandboxerError): void;
}

/**
 * Disconnects clients of WebSockets and HTTP streams whose key was revoked or has expired. Their sandboxes stay, as
 * with any client that disconnects.
 */
export class KeyWatch {
  readonly #connections = new Set<Watched>();
  readonly #timer: NodeJS.Timeout;

  constructor(authenticator: Authenticator) {
    const look = (): void => {
      for (const connection of this.#connections) {
        if (!authenticator.isCurrent(connection.actor.who))
          connection.sendAway(new SandboxerError("unauthorized", "The key was revoked or has expired."));
      }
    };
    this.#timer = setInterval(look, LOOK_EVERY_MS).unref();
  }

  add(connection: Watched): void {
    if (connection.actor.who.kind !== "key") return;
    this.#connections.add(connection);
    connection.gone.addEventListener("abort", () => this.#connections.delete(connection), { once: true });
  }

  stop(): void {
    clearInterval(this.#timer);
  }
}
