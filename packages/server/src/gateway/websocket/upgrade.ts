import type { IncomingMessage, Server } from "node:http";
import type { Socket } from "node:net";
import type { Duplex } from "node:stream";
import { setTimeout as delay } from "node:timers/promises";
import { asSandboxerError, CloseCode, PROCESS_ATTACH_PATH, SandboxerError } from "@sandboxer/protocol";
import type { Logger } from "pino";
import { WebSocketServer } from "ws";
import type { RequestKeys } from "../../manager/encryption.ts";
import type { SandboxManager } from "../../manager/sandbox-manager.ts";
import { BoundedWebSocket } from "../../support/bounded-web-socket.ts";
import type { AccessGate } from "../access/access-gate.ts";
import { Actor } from "../access/actor.ts";
import type { AuditLog } from "../access/audit-log.ts";
import { requestKeysOf } from "../access/encryption-key.ts";
import { KeyWatch } from "../access/key-watch.ts";
import type { PeerSecret } from "../access/peer-secret.ts";
import { hasScope, TOKEN_HOLDER } from "../access/principal.ts";
import { carriesKey, SUBPROTOCOL } from "../access/shown-credential.ts";
import type { Previews } from "../preview/previews.ts";
import { relayWish } from "../relay/relay-headers.ts";
import { SocketRelays, type RelayableAttach } from "../relay/socket-relays.ts";
import { Admission, Farewells } from "./admission.ts";
import { serveAttach, type AttachParameters } from "./attach-endpoint.ts";
import { Connection, type ConnectionParts } from "./connection.ts";
import { serveCreate } from "./create-endpoint.ts";
import { type Newcomer, type Place, type PlaceLimits, Places } from "./places.ts";
import { serveProcess } from "./process/process-endpoint.ts";
import { refuseWith } from "./refusal.ts";

export interface UpgradeOptions extends PlaceLimits {
  readonly gate: AccessGate;
  readonly audit: AuditLog;
  /** Undefined until the server is ready. */
  readonly manager: () => SandboxManager | undefined;
  readonly maxMessageBytes: number;
  /** How long a client of `/create` may take to send its configuration. */
  readonly firstMessageMs?: number;
  /** The shared secret of the store's servers; undefined until it is known. */
  readonly peerSecret: () => PeerSecret | undefined;
  /** Opens ports of sandboxes. */
  readonly previews: Pick<Previews, "takes" | "upgrade" | "close">;
  readonly log: Logger;
}

const FIRST_MESSAGE_MS = 10_000;
const PROCESS_PATH = new RegExp(`^${PROCESS_ATTACH_PATH.replaceAll(/\{\w+\}/g, "([^/]+)")}$`);

interface Endpoint {
  readonly newcomer: Newcomer;
  readonly actor: Actor;
  readonly encryption: RequestKeys;
  readonly serve: (parts: ConnectionParts) => Promise<void>;
  /** If the owner of the sandbox may serve the client. */
  readonly relayable?: RelayableAttach | undefined;
}

/**
 * Turns requests for `/create`, `/attach/{id}` and a process's `attach` into WebSockets, after all checks that can
 * refuse them.
 */
export class WebSocketGateway {
  readonly #options: UpgradeOptions;
  readonly #server: WebSocketServer;
  readonly #sessions = new Set<Promise<void>>();
  readonly #keyWatch: KeyWatch;
  readonly #relays: SocketRelays;
  readonly #places: Places;
  readonly #farewells = new Farewells();

  constructor(http: Server, options: UpgradeOptions) {
    this.#options = options;
    this.#places = new Places(options);
    this.#keyWatch = new KeyWatch(options.gate.authenticator);
    this.#relays = new SocketRelays(
      this.#keyWatch,
      (instanceId) => options.manager()?.isKnownDead(instanceId) !== true,
      options.peerSecret,
    );
    this.#server = new WebSocketServer({
      noServer: true,
      WebSocket: BoundedWebSocket,
      maxPayload: options.maxMessageBytes,
      clientTracking: true,
      handleProtocols: chooseSubprotocol,
    });
    http.on("upgrade", (request, socket, head) => this.#upgrade(request, socket, head));
  }

  get clients(): number {
    return this.#places.taken;
  }

  /** Disconnects the remaining clients, waits until they received their messages, then closes everything. */
  async close(graceMs: number): Promise<void> {
    this.#keyWatch.stop();
    this.#relays.close();
    this.#options.previews.close();
    this.#server.clients.forEach((client) => client.close(CloseCode.restarting));
    const timer = setTimeout(() => this.#server.clients.forEach((client) => client.terminate()), graceMs);
    // A session may wait for something that never comes.
    await Promise.race([Promise.all(this.#sessions), delay(2 * graceMs, undefined, { ref: false })]);
    clearTimeout(timer);
    this.#server.clients.forEach((client) => client.terminate());
    this.#server.close();
  }

  #upgrade(request: IncomingMessage, socket: Duplex, head: Buffer): void {
    const { previews } = this.#options;
    if (previews.takes(request)) return void previews.upgrade(request, socket, head);
    socket.on("error", () => socket.destroy());
    const manager = this.#options.manager();
    let endpoint: Endpoint | undefined;
    try {
      endpoint = this.#endpoint(request, URL.parse(request.url ?? "/", "http://localhost"));
    } catch (error) {
      return refuseWith(socket, asSandboxerError(error));
    }
    if (endpoint === undefined)
      return refuseWith(socket, new SandboxerError("not_found", "There is no such endpoint."));
    if (manager === undefined) return refuseWith(socket, new SandboxerError("starting", "The server is starting."));
    if (manager.draining) return refuseWith(socket, new SandboxerError("draining", "The server is shutting down."));
    const { newcomer, actor, encryption, serve, relayable } = endpoint;
    let place: Place;
    try {
      place = this.#places.take(newcomer);
    } catch (thrown) {
      const error = asSandboxerError(thrown);
      // This server is full: another one may have room.
      return refuseWith(socket, error, error.details["limit"] === "max_clients" ? 503 : undefined);
    }
    socket.once("close", place.leave);
    const open = (): void =>
      this.#server.handleUpgrade(request, socket, head, (client) => {
        const stream = socket as Socket;
        const admission = new Admission(client, stream, place, this.#farewells);
        this.#serve({ socket: client, stream, admission, manager, actor, encryption, log: this.#options.log }, serve);
      });
    if (relayable === undefined) return open();
    const upgrade = { request, socket, head, onAgreed: place.admit };
    this.#relays
      .pass(manager, actor, relayable, upgrade)
      .then((passed) => passed || open())
      .catch((error: unknown) => refuseWith(socket, asSandboxerError(error)));
  }

  /** The endpoint of a request; throws if the caller may not use it. Undefined: there is no such endpoint. */
  #endpoint(request: IncomingMessage, url: URL | null): Endpoint | undefined {
    const [, encodedId] =
      /^\/attach\/([^/]+)$/.exec(url?.pathname ?? "") ?? PROCESS_PATH.exec(url?.pathname ?? "") ?? [];
    if (url === null || (url.pathname !== "/create" && encodedId === undefined)) return undefined;
    const { gate, audit, firstMessageMs = FIRST_MESSAGE_MS } = this.#options;
    const shown = gate.requestOf(request);
    const { remoteAddress } = shown;
    const who = gate.admit(shown);
    const actor = new Actor(who, audit, remoteAddress);
    const encryption = requestKeysOf(request, who);
    if (encodedId === undefined) {
      actor.require("use", "create");
      const newcomer = { who, address: remoteAddress, onTrial: false };
      return { newcomer, actor, encryption, serve: (parts) => serveCreate(this.#connect(parts), firstMessageMs) };
    }
    const sandboxId = decode(encodedId);
    const token = url.searchParams.get("sandbox_token") ?? undefined;
    const trusted = hasScope(who, "use");
    // Anyone may send a token, which is checked later. Without one, a key with the right scope is needed.
    if (token === undefined) actor.require("use", "attach", { sandboxId });
    const checkpoint = url.searchParams.get("checkpoint") ?? undefined;
    const extensions = ["1", "true"].includes(url.searchParams.get("extensions") ?? "");
    const parameters: AttachParameters = { sandboxId, token, checkpoint, trusted, extensions };
    const entitled = trusted || token === undefined ? actor : new Actor(TOKEN_HOLDER, audit, remoteAddress);
    const newcomer = { who, address: remoteAddress, onTrial: !trusted, isRelayed: shown.isRelayed };
    const [, , encodedProcess] = PROCESS_PATH.exec(url.pathname) ?? [];
    // A wrong key next to a right token is ignored.
    const key = who.kind === "none" ? undefined : gate.authenticator.keyOf(shown);
    const authorization = key === undefined ? undefined : `Bearer ${key}`;
    const credentials = { token, trusted };
    const relayed = { sandboxId, credentials, authorization, encryption, path: passedPath(url) };
    const wish = relayWish(request);
    if (encodedProcess === undefined) {
      // Without the client's wish, attaching moves the sandbox to this server.
      const relayable = wish === "allow" ? ({ ...relayed, what: "attach" } as const) : undefined;
      const serve: Endpoint["serve"] = (parts) => serveAttach(this.#connect(parts), parameters);
      return { newcomer, actor: entitled, encryption, serve, relayable };
    }
    const offset = url.searchParams.get("offset") ?? undefined;
    const process = { sandboxId, processId: decode(encodedProcess), credentials, offset };
    const relayable = wish === "never" ? undefined : ({ ...relayed, what: "attach_process" } as const);
    const serve: Endpoint["serve"] = (parts) => serveProcess(parts, process, this.#keyWatch);
    return { newcomer, actor: entitled, encryption, serve, relayable };
  }

  #connect(parts: ConnectionParts): Connection {
    const connection = new Connection(parts);
    this.#keyWatch.add(connection);
    return connection;
  }

  #serve(parts: ConnectionParts, serve: Endpoint["serve"]): void {
    const { socket: client, log } = parts;
    const serving = serve(parts).catch((error: unknown) => {
      log.error({ err: error }, "a client's session failed");
      client.close(1011);
    });
    const closed = new Promise((resolve) => client.once("close", resolve));
    const over = Promise.all([serving, closed]).then(() => {});
    this.#sessions.add(over);
    void over.finally(() => this.#sessions.delete(over));
  }
}

/** The same request at another server, with only the parameters that it means. */
function passedPath({ pathname, searchParams }: URL): string {
  const passed = ["checkpoint", "extensions", "offset", "sandbox_token"].flatMap((name) => {
    const value = searchParams.get(name);
    return value === null ? [] : [[name, value]];
  });
  return passed.length === 0 ? pathname : `${pathname}?${new URLSearchParams(passed).toString()}`;
}

function decode(text: string): string {
  try {
    return decodeURIComponent(text);
  } catch {
    return text;
  }
}

/** Our subprotocol if it is offered, otherwise the client's first. A subprotocol with a key is never repeated. */
function chooseSubprotocol(offers: ReadonlySet<string>): string | false {
  if (offers.has(SUBPROTOCOL)) return SUBPROTOCOL;
  return [...offers].find((offer) => !carriesKey(offer)) ?? false;
}
