import type { IncomingMessage } from "node:http";
import { asSandboxerError, isSandboxId, SandboxerError, type SandboxRecord, type Scope } from "@sandboxer/protocol";
import type { Logger } from "pino";
import type { VerbOptions } from "../../manager/observing/operations/tracked.ts";
import type { Sandbox } from "../../manager/sandbox.ts";
import type { SandboxManager } from "../../manager/sandbox-manager.ts";
import { unlessAborted } from "../../support/unless-aborted.ts";
import type { AccessGate } from "../access/access-gate.ts";
import { Actor } from "../access/actor.ts";
import type { AuditLog } from "../access/audit-log.ts";
import { requestKeysOf } from "../access/encryption-key.ts";
import type { PeerSecret } from "../access/peer-secret.ts";
import type { SharedCallsHolder } from "../http/shared-calls.ts";
import type { PreviewAddresses } from "../preview/preview-address.ts";
import { keyedAsE2b } from "./api-key.ts";
import { E2bRelay } from "./e2b-relay.ts";
import { E2bError, notRunning } from "./errors.ts";
import { resumesByItself } from "./reserved-labels.ts";
import { type E2bTokenKind, E2bTokens, TOKEN_HEADERS } from "./tokens.ts";

export interface E2bOptions {
  readonly gate: AccessGate;
  readonly audit: AuditLog;
  readonly addresses: PreviewAddresses;
  /** Both undefined until the server is ready. */
  readonly manager: () => SandboxManager | undefined;
  readonly peerSecret: () => PeerSecret | undefined;
  /** Undefined until the server is ready. */
  readonly shared: () => SharedCallsHolder | undefined;
  readonly log: Logger;
}

/** An authorized caller of the control plane. */
export interface E2bCaller {
  /** Audits what the caller does. */
  readonly actor: Actor;
  /** For the manager's verbs. */
  readonly options: VerbOptions;
}

/** How long a sandbox runs that a request has resumed. */
const RESUMED_MS = 5 * 60_000;

/** Shared by the control plane, envd and the code interpreter of E2B's dialect. */
export class E2bServices {
  readonly tokens: E2bTokens;
  /** Calls about sandboxes on other servers. Requests that name their sandbox were passed on before. */
  readonly relay: E2bRelay;
  readonly addresses: PreviewAddresses;
  readonly log: Logger;
  readonly #options: E2bOptions;
  /** By sandbox: all requests for a paused sandbox share one resume. */
  readonly #resumes = new Map<string, Promise<Sandbox>>();

  constructor(options: E2bOptions) {
    this.#options = options;
    this.tokens = new E2bTokens(options.peerSecret);
    this.relay = new E2bRelay(this);
    this.addresses = options.addresses;
    this.log = options.log;
  }

  /** Throws `starting` or `draining`. */
  get manager(): SandboxManager {
    const manager = this.#options.manager();
    if (manager === undefined) throw new SandboxerError("starting", "The server is starting.");
    if (manager.draining) throw new SandboxerError("draining", "The server is shutting down.");
    return manager;
  }

  isKnownDead(instanceId: string): boolean {
    return this.#options.manager()?.isKnownDead(instanceId) === true;
  }

  /** Calls that are carried out once for all servers of the store. */
  get shared(): SharedCallsHolder {
    return this.#options.shared() ?? { sharedCalls: undefined, onRecordFailure: () => {} };
  }

  get peerSecret(): PeerSecret | undefined {
    return this.#options.peerSecret();
  }

  /** Identifies the caller by `X-API-KEY`. Throws if it may not do this; `what` is for the audit log. */
  authorize(message: IncomingMessage, scope: Scope, what: string): E2bCaller {
    const { gate, audit } = this.#options;
    const request = keyedAsE2b(gate.requestOf(message));
    const principal = gate.admit(request);
    const actor = new Actor(principal, audit, request.remoteAddress);
    actor.require(scope, what);
    return { actor, options: { encryption: requestKeysOf(message, principal), tenant: principal.id } };
  }

  /**
   * For a caller whose credential is a token, or who needs none: limits its rate, by its address. A server without keys
   * also refuses pages of other sites and untrusted proxies, as everywhere.
   */
  admitStranger(message: IncomingMessage): void {
    const { gate, addresses } = this.#options;
    const request = gate.requestOf(message);
    if (gate.authenticator.open)
      gate.checkWay(request, { onSandboxHost: addresses.targetOf(message.headers.host) != null });
    gate.countCaller(request);
  }

  /** Searches for what a credential belongs to, and limits the searches that find nothing, by the caller's address. */
  async guess<Found>(message: IncomingMessage, search: () => Promise<Found | undefined>): Promise<Found | undefined> {
    const { gate } = this.#options;
    return await gate.guess(gate.requestOf(message), search);
  }

  /** Throws a 401 unless the request has the sandbox's token of this kind. */
  requireToken(kind: E2bTokenKind, sandboxId: string, { headers }: Pick<IncomingMessage, "headers">): void {
    const header = TOKEN_HEADERS[kind];
    if (this.tokens.isToken(kind, sandboxId, headers[header])) return;
    throw new E2bError(401, `The header ${header} has no valid token of this sandbox.`);
  }

  /**
   * The sandbox of a request, which runs here: calls about sandboxes on other servers were relayed before. A paused one
   * is resumed if it was created with `autoResume`, once for all who ask. Otherwise throws E2B's 502, also for a
   * sandbox that does not exist.
   */
  async running(sandboxId: string, signal?: AbortSignal): Promise<Sandbox> {
    if (!isSandboxId(sandboxId)) throw notRunning(sandboxId);
    const { manager } = this;
    try {
      return await manager.running(sandboxId);
    } catch (thrown) {
      const error = asSandboxerError(thrown);
      if (error.row.httpStatus >= 500) throw error;
    }
    const record = await manager.find(sandboxId).catch(() => undefined);
    if (record === undefined || !resumesByItself(record)) throw notRunning(sandboxId);
    const shared = this.#resumes.get(sandboxId) ?? this.#resume(record).finally(() => this.#resumes.delete(sandboxId));
    this.#resumes.set(sandboxId, shared);
    return await unlessAborted(shared, signal);
  }

  async #resume({ id: sandboxId, state }: SandboxRecord): Promise<Sandbox> {
    const { manager } = this;
    const expires_at = new Date(Date.now() + RESUMED_MS).toISOString();
    // Before it runs, because an expired sandbox cannot be resumed.
    if (state === "stored") await manager.amend(sandboxId, undefined, { expires_at });
    const found = await manager.ports.reach(sandboxId);
    if ("url" in found) throw notRunning(sandboxId);
    return found;
  }
}
