import type { IncomingMessage } from "node:http";
import type { Duplex } from "node:stream";
import { setTimeout as delay } from "node:timers/promises";
import { asSandboxerError, PORT_CONNECT_PATH, SandboxerError } from "@sandboxer/protocol";
import type { RequestKeys } from "../../manager/encryption.ts";
import type { OtherServer } from "../../manager/ownership/owner-elsewhere.ts";
import type { ShownPort } from "../../manager/ports/port-verbs.ts";
import type { Sandbox } from "../../manager/sandbox.ts";
import type { SandboxManager } from "../../manager/sandbox-manager.ts";
import { PEER_HEADER, type PeerSecret } from "../access/peer-secret.ts";
import { requestOtherServer } from "../relay/other-server-request.ts";
import { refusal } from "../relay/socket-relay.ts";
import { ConnectionStream } from "./connection-stream.ts";
import type { PreviewTarget } from "./preview-address.ts";

/** The `Upgrade` of a request that becomes a TCP connection to a port inside. */
export const PORT_UPGRADE = "sandboxer-port";

/** How long to wait before a sandbox is looked for again whose owner did not answer or has just paused it. */
const LOOK_AGAIN_MS = 250;
const HANDSHAKE_MS = 10_000;
/** Clocks of servers differ. */
const PROOF_AGE_MS = 5 * 60_000;

export interface OpenStreamOptions {
  readonly encryption?: RequestKeys | undefined;
  /** Until when the sandbox is looked for and resumed; aborts with the error for the caller. */
  readonly signal: AbortSignal;
}

/** Opens connections to ports inside, on whichever server of the store the sandbox is. */
export class PortStreams {
  readonly #manager: SandboxManager;
  readonly #secret: PeerSecret;

  constructor(manager: SandboxManager, secret: PeerSecret) {
    this.#manager = manager;
    this.#secret = secret;
  }

  async open(target: PreviewTarget, options: OpenStreamOptions): Promise<Duplex> {
    const { signal } = options;
    for (;;) {
      try {
        const found = await this.#manager.ports.reach(target.sandboxId, options);
        return "url" in found ? await this.#openAt(found, target) : await this.openHere(found, target);
      } catch (thrown) {
        const error = asSandboxerError(thrown);
        signal.throwIfAborted();
        if (!mayBeElsewhereSoon(error)) throw error;
        await delay(LOOK_AGAIN_MS, undefined, { signal }).catch(() => signal.throwIfAborted());
      }
    }
  }

  /** For a sandbox that runs here. If nothing listens, the error names the ports on which something does. */
  async openHere(sandbox: Sandbox, { port }: PreviewTarget): Promise<Duplex> {
    try {
      return new ConnectionStream(await this.#manager.ports.open(sandbox, port));
    } catch (thrown) {
      const error = asSandboxerError(thrown);
      if (error.code !== "backend_unavailable") throw error;
      const listening = await this.#manager.ports.list(sandbox).catch((): ShownPort[] => []);
      throw new SandboxerError("backend_unavailable", `Nothing listens on port ${port} inside the sandbox.`, {
        hint: "Start the program that listens on the port, and load this again. `sandboxer ports SANDBOX` lists the open ports.",
        details: { port, listening: [...new Set(listening.map((each) => each.port))] },
      });
    }
  }

  /** For a call of another server of the store. */
  proofOf(target: PreviewTarget): string {
    const nowMs = Date.now();
    return `${nowMs}.${this.#secret.proofOf(provedText(target, nowMs))}`;
  }

  isPeer({ headers }: IncomingMessage, target: PreviewTarget): boolean {
    const [, ms = "", proof = ""] = /^(\d{13})\.([0-9a-f]{64})$/.exec(String(headers[PEER_HEADER] ?? "")) ?? [];
    if (proof === "" || Math.abs(Date.now() - Number(ms)) > PROOF_AGE_MS) return false;
    return this.#secret.isProof(proof, provedText(target, Number(ms)));
  }

  async #openAt(server: OtherServer, target: PreviewTarget): Promise<Duplex> {
    const path = PORT_CONNECT_PATH.replace("{id}", target.sandboxId).replace("{port}", String(target.port));
    const headers = { connection: "Upgrade", upgrade: PORT_UPGRADE, [PEER_HEADER]: this.proofOf(target) };
    const { request, failure } = requestOtherServer(server, { method: "GET", path, headers });
    const timer = setTimeout(() => request.destroy(new Error("no answer in time")), HANDSHAKE_MS);
    try {
      const upgraded = Promise.withResolvers<Duplex>();
      request.once("upgrade", (_answer, socket, head) => {
        if (head.length > 0) socket.unshift(head);
        upgraded.resolve(socket);
      });
      request.once("response", (answer) => void refusal(server, answer).then(upgraded.reject, upgraded.reject));
      request.once("error", (error) => upgraded.reject(failure(error)));
      request.end();
      return await upgraded.promise;
    } finally {
      clearTimeout(timer);
    }
  }
}

function provedText({ sandboxId, port }: PreviewTarget, ms: number): string {
  return `connect ${sandboxId} ${port} ${ms}`;
}

/** The owner ended, or has paused or handed off the sandbox since it was looked up. */
function mayBeElsewhereSoon({ code, details }: SandboxerError): boolean {
  if (code === "server_unreachable") return details["reached"] !== true;
  if (code === "sandbox_failed") return details["ended"] === "destroyed";
  return code === "lease_lost" || (code === "wrong_state" && details["expires_at"] === undefined);
}
