import type { IncomingMessage, ServerResponse } from "node:http";
import type { Duplex } from "node:stream";
import { asSandboxerError, PORT_CONNECT_PATH, SandboxerError } from "@sandboxer/protocol";
import type { SandboxManager } from "../../manager/sandbox-manager.ts";
import type { PortAccess } from "../../manager/ports/port-verbs.ts";
import { requestKeysOf } from "../access/encryption-key.ts";
import { KeyWatch } from "../access/key-watch.ts";
import type { PeerSecret } from "../access/peer-secret.ts";
import type { AccessRequest } from "../access/shown-credential.ts";
import { NEVER_RENDERED } from "../console/security-headers.ts";
import { errorAnswer } from "../http/error-body.ts";
import { joined } from "../relay/socket-relay.ts";
import { refuseWith } from "../websocket/refusal.ts";
import { forwardRequest, forwardUpgrade, type ForwardedRequest } from "./forward-request.ts";
import { PORT_UPGRADE, PortStreams } from "./port-streams.ts";
import {
  type Admission,
  hasCredentials,
  PreviewAccess,
  type PreviewAccessOptions,
  withoutCredentials,
} from "./preview-access.ts";
import { type PreviewTarget, targetFrom } from "./preview-address.ts";
import { previewCookie } from "./preview-cookies.ts";
import { apiResponseHeaders, requestHeaders, responseHeaders } from "./preview-headers.ts";
import { errorPage, PAGE_HEADERS, WAKING_PAGE } from "./preview-pages.ts";
import { PreviewPlaces } from "./preview-places.ts";

export interface PreviewOptions extends PreviewAccessOptions {
  readonly maxPreviews: number;
  /** How long a request waits for a paused sandbox. */
  readonly wakeTimeoutMs: number;
  /** How long a browser waits for it before it gets a page that reloads itself. */
  readonly pageAfterMs?: number;
  /** Both undefined until the server is ready. */
  readonly manager: () => SandboxManager | undefined;
  readonly peerSecret: () => PeerSecret | undefined;
}

const PAGE_AFTER_MS = 1_000;
/** How long the cookie of a browser lasts that came with the sandbox's token. */
const COOKIE_SECONDS = 12 * 3600;
const API_PATH = /^\/v1\/sandboxes\/([^/?]+)\/ports\/([^/?]+)(\/[^?]*)?(\?.*)?$/;
const CONNECT_PATH = new RegExp(`^${PORT_CONNECT_PATH.replaceAll(/\{\w+\}/g, "([^/?]+)")}(\\?.*)?$`);

/** A request for a port of a sandbox. */
interface Asked {
  readonly target: PreviewTarget;
  /** On the preview's own host, on the API's origin below a path, or for the bytes of a connection. */
  readonly way: "host" | "path" | "connect";
  /** For the program inside, with the query as it was sent. */
  readonly path: string;
  readonly query: URLSearchParams;
}

/**
 * Opens ports of sandboxes to the outside: for browsers on a host of its own for each port, for programs below
 * `/v1/sandboxes/{id}/ports/{port}`, and as plain connections. A paused sandbox is resumed.
 */
export class Previews {
  readonly #options: PreviewOptions;
  readonly #access: PreviewAccess;
  readonly #places: PreviewPlaces;
  readonly #watch: KeyWatch;
  readonly #sockets = new Set<Duplex>();

  constructor(options: PreviewOptions) {
    this.#options = options;
    this.#access = new PreviewAccess(options);
    this.#places = new PreviewPlaces(options.maxPreviews);
    this.#watch = new KeyWatch(options.gate.authenticator);
  }

  /** Whether a request is for a port, or on a host where nothing else is served. */
  takes(request: IncomingMessage): boolean {
    return this.#asked(request) !== undefined;
  }

  close(): void {
    this.#watch.stop();
    for (const socket of this.#sockets) socket.destroy();
  }

  async serve(request: IncomingMessage, answer: ServerResponse): Promise<void> {
    const onHost = this.#options.addresses.targetOf(request.headers.host) !== undefined;
    try {
      const asked = this.#asked(request);
      if (asked == null || asked.way === "connect") throw noSuchPreview();
      if (asked.way === "path") refuseBrowsers(request, this.#options.addresses.urlOf(asked.target));
      const { shown, admission, access } = await this.#admit(request, asked);
      // Nothing would end what is begun for a client that has disconnected.
      if (answer.destroyed) return;
      if (this.#redirected(request, answer, asked, { shown, admission, access })) return;
      const visitor = { who: admission.who, address: shown.remoteAddress };
      const release = this.#places.take(asked.target.sandboxId, visitor);
      answer.once("close", release);
      const gone = new AbortController();
      answer.once("close", () => gone.abort(new SandboxerError("timeout", "The client disconnected.")));
      this.#watch.add({ actor: { who: admission.who }, gone: gone.signal, sendAway: () => answer.destroy() });
      const stream = await this.#open(request, asked, admission, gone.signal, onHost && isNavigation(request));
      if (stream === undefined) return sendPage(answer, 503, WAKING_PAGE, { "retry-after": "1" });
      await forwardRequest(request, answer, this.#forwarded(request, asked, stream, { shown, admission, access }));
    } catch (error) {
      sendFailure(request, answer, asSandboxerError(error), onHost);
    }
  }

  /** A WebSocket to a program inside, or a plain connection. */
  async upgrade(request: IncomingMessage, socket: Duplex, head: Buffer): Promise<void> {
    socket.on("error", () => socket.destroy());
    this.#sockets.add(socket);
    socket.once("close", () => this.#sockets.delete(socket));
    try {
      const asked = this.#asked(request);
      if (asked == null) throw noSuchPreview();
      if (asked.way === "path") refuseBrowsers(request, this.#options.addresses.urlOf(asked.target));
      const upgrade = request.headers.upgrade?.toLowerCase();
      if (upgrade !== (asked.way === "connect" ? PORT_UPGRADE : "websocket"))
        throw new SandboxerError("bad_request", `Upgrade to ${asked.way === "connect" ? PORT_UPGRADE : "websocket"}.`);
      if (asked.way === "connect" && this.#streams().isPeer(request, asked.target))
        return await this.#joinPeer(asked.target, socket, head);
      const { shown, admission, access } = await this.#admit(request, asked);
      if (socket.destroyed) return;
      const visitor = { who: admission.who, address: shown.remoteAddress };
      socket.once("close", this.#places.take(asked.target.sandboxId, visitor));
      const gone = new AbortController();
      socket.once("close", () => gone.abort(new SandboxerError("timeout", "The client disconnected.")));
      this.#watch.add({ actor: { who: admission.who }, gone: gone.signal, sendAway: () => socket.destroy() });
      const stream = await this.#open(request, asked, admission, gone.signal, false);
      if (stream === undefined) return;
      if (asked.way === "connect") return await join(socket, stream, head);
      await forwardUpgrade(socket, head, this.#forwarded(request, asked, stream, { shown, admission, access }));
    } catch (error) {
      if (!socket.destroyed)
        refuseWith(socket, asPreviewError(asSandboxerError(error)), statusOf(asSandboxerError(error)));
    }
  }

  /** Another server of the store asks for a sandbox that runs here. It is neither looked for elsewhere nor resumed. */
  async #joinPeer(target: PreviewTarget, socket: Duplex, head: Buffer): Promise<void> {
    const sandbox = await this.#manager().running(target.sandboxId);
    const stream = await this.#streams().openHere(sandbox, target);
    await join(socket, stream, head);
  }

  #asked(request: IncomingMessage): Asked | null | undefined {
    const url = originForm(request);
    const target = this.#options.addresses.targetOf(request.headers.host);
    if (target === null) return null;
    if (target !== undefined) return { target, way: "host", path: url, query: queryOf(url) };
    const [, id = "", port = "", path = "/", query = ""] = API_PATH.exec(url) ?? [];
    const named = targetFrom(id, port);
    if (named !== undefined) return { target: named, way: "path", path: path + query, query: new URLSearchParams() };
    const [, connectId = "", connectPort = ""] = CONNECT_PATH.exec(url) ?? [];
    const connected = targetFrom(connectId, connectPort);
    return connected === undefined ? undefined : { target: connected, way: "connect", path: "/", query: queryOf(url) };
  }

  async #admit(request: IncomingMessage, { target, way, query }: Asked): Promise<Admitted> {
    const { gate } = this.#options;
    const manager = this.#manager();
    const shown = withCookiesIf(way === "host", gate.requestOf(request));
    const missing = { error: undefined as unknown };
    const access = await manager.ports.access(target.sandboxId).catch((error: unknown) => {
      missing.error = error;
      return undefined;
    });
    // The API's own origin has more rules.
    if (way === "host") gate.checkProxy(shown);
    else gate.checkWay(shown);
    const admission = this.#access.admit(shown, query, target, access);
    if (missing.error !== undefined) throw missing.error;
    await this.#checkAwake(target, access);
    return { shown, admission, access };
  }

  /** Some sandboxes stay paused until somebody resumes them, or are resumed in another way. */
  async #checkAwake({ sandboxId }: PreviewTarget, access: PortAccess | undefined): Promise<void> {
    const { rules } = this.#options;
    if (rules === undefined || access === undefined || this.#manager().ports.runsHere(sandboxId)) return;
    if ((await this.#manager().ownerElsewhere(sandboxId)) === undefined) await rules.wake(sandboxId, access.labels);
  }

  /** A browser that came with a link or a token gets a cookie, and its address bar no longer shows the secret. */
  #redirected(
    request: IncomingMessage,
    answer: ServerResponse,
    { way, target, path, query }: Asked,
    { shown, admission: { by, signature }, access }: Admitted,
  ): boolean {
    if (way !== "host" || !hasCredentials(query) || !isNavigation(request)) return false;
    if (by !== "link" && by !== "token") return false;
    const endsAt = Math.floor(Date.now() / 1000) + COOKIE_SECONDS;
    const cookie = signature ?? this.#options.links.sign(target, endsAt, access?.linkRound(target.port) ?? 0);
    const clean = (path.split("?", 1)[0] ?? "/").replace(/^[/\\]+/, "/") + withoutCredentials(query);
    answer.writeHead(303, {
      location: clean,
      "set-cookie": previewCookie(cookie, shown.isSecure === true),
      "cache-control": "no-store",
      "referrer-policy": "no-referrer",
    });
    answer.end();
    return true;
  }

  /** Undefined: a browser has waited long enough, and the sandbox is still being resumed. */
  async #open(
    request: IncomingMessage,
    { target }: Asked,
    { who }: Admission,
    gone: AbortSignal,
    isPage: boolean,
  ): Promise<Duplex | undefined> {
    const { wakeTimeoutMs, pageAfterMs = PAGE_AFTER_MS } = this.#options;
    const late = new AbortController();
    const timer = setTimeout(
      () => late.abort(isPage ? STILL_RESUMING : tooLate(wakeTimeoutMs)),
      isPage ? pageAfterMs : wakeTimeoutMs,
    );
    const signal = AbortSignal.any([gone, late.signal]);
    try {
      const stream = await this.#streams().open(target, { encryption: requestKeysOf(request, who), signal });
      stream.on("error", () => stream.destroy());
      if (gone.aborted) stream.destroy();
      return stream;
    } catch (error) {
      if (error === STILL_RESUMING) return undefined;
      throw error;
    } finally {
      clearTimeout(timer);
    }
  }

  #forwarded(
    request: IncomingMessage,
    { target, way, path, query }: Asked,
    stream: Duplex,
    { shown, admission, access }: Admitted,
  ): ForwardedRequest {
    const askedHost = request.headers.host ?? "";
    const prefix = `/v1/sandboxes/${target.sandboxId}/ports/${target.port}`;
    const isPrivate = admission.by !== "public";
    const headers = requestHeaders(request.headers, {
      host: way === "host" ? askedHost : `localhost:${target.port}`,
      askedHost,
      protocol: shown.isSecure === true ? "https" : "http",
      clientAddress: shown.remoteAddress,
      ...(way === "path" ? { prefix } : {}),
      credentials: this.#access.credentialsIn(shown, admission, access),
      cookies: way === "host",
    });
    return {
      method: request.method ?? "GET",
      path: hasCredentials(query) ? (path.split("?", 1)[0] ?? "/") + withoutCredentials(query) : path,
      headers,
      stream,
      headersOf: (inside) =>
        way === "host" ? responseHeaders(inside, isPrivate) : apiResponseHeaders(inside, NEVER_RENDERED, prefix),
    };
  }

  #manager(): SandboxManager {
    const manager = this.#options.manager();
    if (manager === undefined) throw new SandboxerError("starting", "The server is starting.");
    if (manager.draining) throw new SandboxerError("draining", "The server is shutting down.");
    return manager;
  }

  #streams(): PortStreams {
    const secret = this.#options.peerSecret();
    if (secret === undefined) throw new SandboxerError("starting", "The server is starting.");
    return new PortStreams(this.#manager(), secret);
  }
}

interface Admitted {
  readonly shown: AccessRequest;
  readonly admission: Admission;
  readonly access: PortAccess | undefined;
}

const STILL_RESUMING = new SandboxerError("timeout", "The sandbox is still being resumed.");

async function join(socket: Duplex, stream: Duplex, head: Buffer): Promise<void> {
  if (socket.destroyed) return void stream.destroy();
  socket.write(`HTTP/1.1 101 Switching Protocols\r\nConnection: Upgrade\r\nUpgrade: ${PORT_UPGRADE}\r\n\r\n`);
  if (head.length > 0) stream.write(head);
  await joined(socket, stream);
}

/**
 * A page on the API's origin could use the API with the cookie of its visitor. Nothing of a sandbox is ever shown by a
 * browser there: each port has a host of its own for that.
 */
function refuseBrowsers({ headers }: IncomingMessage, url: string): void {
  // Node's fetch sends a mode too.
  const isBrowser = headers["sec-fetch-site"] !== undefined || headers["sec-fetch-mode"] === "navigate";
  if (!isBrowser && headers.origin === undefined) return;
  throw new SandboxerError("permission_denied", "Browsers cannot open a port below the API's address.", {
    hint: `Open ${url} instead.`,
    details: { url },
  });
}

/** A page that is opened in a tab or a frame. Old browsers do not say so. */
function isNavigation({ method, headers }: IncomingMessage): boolean {
  const mode = headers["sec-fetch-mode"];
  return method === "GET" && accepts(headers.accept) && (mode === undefined || mode === "navigate");
}

function accepts(header: string | undefined): boolean {
  return header?.includes("text/html") === true;
}

/** No cookie counts on the API's own origin. */
function withCookiesIf(isHost: boolean, request: AccessRequest): AccessRequest {
  const { cookie, ...headers } = request.headers;
  return { ...request, headers: isHost && cookie !== undefined ? { ...headers, cookie } : headers };
}

/** The path and the query; a request may name the whole URL. */
function originForm({ url = "/" }: IncomingMessage): string {
  const rest = /^https?:\/\/[^/?]*(.*)$/i.exec(url)?.[1] ?? url;
  return rest.startsWith("/") || rest === "*" ? rest : `/${rest}`;
}

function queryOf(url: string): URLSearchParams {
  return new URLSearchParams(url.split("?").slice(1).join("?"));
}

function sendFailure(request: IncomingMessage, answer: ServerResponse, thrown: SandboxerError, onHost: boolean): void {
  if (answer.headersSent || answer.destroyed) return void answer.destroy();
  const error = asPreviewError(thrown);
  const status = statusOf(error);
  const retryAfter = error.details["retry_after_seconds"];
  const retry = typeof retryAfter === "number" ? { "retry-after": String(Math.ceil(retryAfter)) } : {};
  // The rest of a body that nobody reads would keep the connection busy.
  const close = request.complete || request.httpVersionMajor === 2 ? {} : { connection: "close" };
  if (onHost && accepts(request.headers.accept))
    return sendPage(answer, status, errorPage(error), { ...retry, ...close });
  answer.writeHead(status, { "content-type": "application/json", ...NEVER_RENDERED, ...retry, ...close });
  answer.end(JSON.stringify(errorAnswer(error).body));
}

function sendPage(answer: ServerResponse, status: number, page: string, more: Record<string, string>): void {
  answer.writeHead(status, { ...PAGE_HEADERS, ...more });
  answer.end(page);
}

/** A program that does not listen or answer is a bad gateway; the server itself is fine. */
function statusOf({ code, row }: SandboxerError): number {
  if (code === "backend_unavailable") return 502;
  return code === "timeout" ? 504 : row.httpStatus;
}

/** A preview has no way to ask for a client's key. */
function asPreviewError(error: SandboxerError): SandboxerError {
  if (error.code !== "key_required") return error;
  return new SandboxerError(
    "key_required",
    "The paused sandbox is encrypted with a key of its client, so a request cannot resume it.",
    {
      hint: "Resume it with its key first, for example `sandboxer attach SANDBOX --encryption-key-file FILE`, then load this again.",
      details: error.details,
    },
  );
}

function tooLate(ms: number): SandboxerError {
  return new SandboxerError("timeout", `The sandbox was not resumed within ${Math.round(ms / 1000)} s.`, {
    hint: "Try again. If many sandboxes are resumed at once, raise the server's --wake-timeout or --max-wakes.",
    details: { retry_after_seconds: 5 },
  });
}

function noSuchPreview(): SandboxerError {
  return new SandboxerError("not_found", "This address names no port of a sandbox.", {
    hint: "Preview addresses look like http://8000-SANDBOX_ID.localhost:8080/. `sandboxer url SANDBOX PORT` prints one.",
  });
}
