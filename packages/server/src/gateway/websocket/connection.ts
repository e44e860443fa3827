import type { Socket } from "node:net";
import { CloseCode, type SandboxerError } from "@sandboxer/protocol";
import type { Logger } from "pino";
import type { WebSocket } from "ws";
import type { Notice, SandboxClient } from "../../manager/client.ts";
import type { RequestKeys } from "../../manager/encryption.ts";
import type { Sandbox } from "../../manager/sandbox.ts";
import type { SandboxManager } from "../../manager/sandbox-manager.ts";
import type { Actor } from "../access/actor.ts";
import type { Admission } from "./admission.ts";
import { Inbox } from "./inbox.ts";
import { sendNotice } from "./notices.ts";
import { Outbox } from "./outbox.ts";
import { Session } from "./session.ts";

export interface ConnectionParts {
  readonly socket: WebSocket;
  readonly stream: Socket;
  readonly admission: Admission;
  readonly manager: SandboxManager;
  /** The client that opened it. */
  readonly actor: Actor;
  /** The encryption keys of the request. */
  readonly encryption: RequestKeys;
  readonly log: Logger;
}

/** A client's socket from its opening; a session once there is a sandbox. */
export class Connection implements SandboxClient {
  readonly manager: SandboxManager;
  readonly actor: Actor;
  readonly encryption: RequestKeys;
  readonly inbox: Inbox;
  readonly outbox: Outbox;
  readonly log: Logger;
  readonly #admission: Admission;
  readonly #abort = new AbortController();
  #session: Session | undefined;

  constructor(parts: ConnectionParts) {
    this.manager = parts.manager;
    this.actor = parts.actor;
    this.encryption = parts.encryption;
    this.log = parts.log;
    this.#admission = parts.admission;
    this.inbox = new Inbox(parts.socket);
    // A client that was told of the end is no longer attached, whether it received the message or not.
    this.outbox = new Outbox(parts.socket, parts.stream, () => this.inbox.end());
    parts.socket.on("close", () => this.#abort.abort(new Error("the client disconnected")));
    // A message that is too large, or an invalid frame: ws closes the socket with the right code.
    parts.socket.on("error", (error) => this.log.debug({ error: error.message }, "client socket error"));
  }

  get gone(): AbortSignal {
    return this.#abort.signal;
  }

  notify(notice: Notice): void {
    if (this.#session === undefined) sendNotice(this.outbox, notice);
    else this.#session.notify(notice);
  }

  /** The client is authorized, and its messages are read from now on. */
  letIn(): void {
    this.#admission.letIn();
  }

  /** The client is refused. */
  turnAway(code: CloseCode): void {
    this.#admission.turnAway(() => this.outbox.close(code));
  }

  /** The client's key is no longer valid. */
  sendAway(error: SandboxerError): void {
    if (!this.outbox.open) return;
    this.outbox.error("PERMISSION_DENIAL_ERROR", error);
    this.outbox.close(CloseCode.applicationError);
  }

  async quiesce(): Promise<void> {
    await this.#session?.quiesce();
  }

  /** Serves the client with its sandbox until it disconnects. */
  async serve(sandbox: Sandbox): Promise<void> {
    const session = new Session(this.manager, sandbox, this.outbox, this.actor);
    this.#session = session;
    try {
      for (let message = await this.inbox.next(); typeof message === "object"; message = await this.inbox.next()) {
        if (!this.outbox.open) break;
        await session.handle(message.text);
        await this.outbox.roomForAnswers();
      }
    } finally {
      session.end();
      this.manager.detach(sandbox, this);
    }
  }
}
