import { CloseCode, SandboxerError } from "@sandboxer/protocol";
import type { Authenticator } from "../access/authenticator.ts";
import type { Connection } from "./connection.ts";

const LOOK_EVERY_MS = 1_000;

/** Sends clients away whose key was revoked or has expired since they came. Their sandboxes stay, as with any that leaves. */
export class KeyWatch {
  readonly #connections = new Set<Connection>();
  readonly #timer: NodeJS.Timeout;

  constructor(authenticator: Authenticator) {
    const look = (): void => {
      for (const connection of this.#connections) {
        if (!authenticator.isCurrent(connection.actor.who)) sendAway(connection);
      }
    };
    this.#timer = setInterval(look, LOOK_EVERY_MS).unref();
  }

  add(connection: Connection): void {
    if (connection.actor.who.kind !== "key") return;
    this.#connections.add(connection);
    connection.gone.addEventListener("abort", () => this.#connections.delete(connection), { once: true });
  }

  stop(): void {
    clearInterval(this.#timer);
  }
}

function sendAway({ outbox }: Connection): void {
  if (!outbox.open) return;
  outbox.error("PERMISSION_DENIAL_ERROR", new SandboxerError("unauthorized", "The key was revoked, or has expired."));
  outbox.close(CloseCode.applicationError);
}
