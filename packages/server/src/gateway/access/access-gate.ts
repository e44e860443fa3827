import type { IncomingMessage } from "node:http";
import { isIPv6 } from "node:net";
import { SandboxerError } from "@sandboxer/protocol";
import type { Clock } from "../../support/clock.ts";
import type { AuditLog } from "./audit-log.ts";
import type { Authenticator } from "./authenticator.ts";
import { proxyRefusal, wayRefusal, type WayOptions } from "./browser.ts";
import { NOBODY, type Principal } from "./principal.ts";
import { RateLimiter } from "./rate-limiter.ts";
import { isGuessable, type AccessRequest } from "./shown-credential.ts";
import { TrustedProxies } from "./trusted-proxies.ts";

export interface AccessGateOptions {
  readonly authenticator: Authenticator;
  readonly audit: AuditLog;
  /** Requests of one caller per second; 0: no limit. */
  readonly rateLimit: number;
  readonly rateBurst: number;
  /** Addresses and networks of trusted proxies. */
  readonly trustedProxies: readonly string[];
  readonly clock: Pick<Clock, "monotonicMs">;
  /** How many servers share the limits: each allows its part of them. */
  readonly servers: () => number;
  /** Whether another server of the store relays a request. */
  readonly isRelayed: (message: IncomingMessage) => boolean;
}

/** Ten wrong keys at once, then one every six seconds. */
const FAILURES = { perSecond: 1 / 6, burst: 10 };

/**
 * The only entry for every HTTP request and WebSocket upgrade: checks its origin, identifies the caller and limits the
 * rate. `requireScope` checks permissions.
 */
export class AccessGate {
  readonly authenticator: Authenticator;
  readonly #audit: AuditLog;
  readonly #proxies: TrustedProxies;
  readonly #isRelayed: AccessGateOptions["isRelayed"];
  /** Callers with a key have limits of their own, so that crowds without a key do not block them. */
  readonly #byKey: RateLimiter | undefined;
  readonly #byAddress: RateLimiter | undefined;
  readonly #failures: RateLimiter;

  constructor(options: AccessGateOptions) {
    const { authenticator, audit, rateLimit, rateBurst, trustedProxies, clock, servers, isRelayed } = options;
    this.authenticator = authenticator;
    this.#isRelayed = isRelayed;
    this.#audit = audit;
    this.#proxies = new TrustedProxies(trustedProxies);
    const limits = { perSecond: rateLimit, burst: rateBurst, clock, servers };
    this.#byKey = rateLimit === 0 ? undefined : new RateLimiter(limits);
    this.#byAddress = rateLimit === 0 ? undefined : new RateLimiter(limits);
    this.#failures = new RateLimiter({ ...FAILURES, clock });
  }

  requestOf(message: IncomingMessage): AccessRequest {
    return { ...this.#proxies.requestOf(message), isRelayed: this.#isRelayed(message) };
  }

  /**
   * Throws `permission_denied` for pages of other origins and for requests through untrusted proxies, and
   * `rate_limited`. An unknown caller is not an error yet.
   */
  admit(request: AccessRequest): Principal {
    this.checkWay(request);
    return this.identify(request);
  }

  /** Throws `permission_denied` for pages of other origins and for requests through untrusted proxies. */
  checkWay(request: AccessRequest, options?: WayOptions): void {
    const refusal = wayRefusal(request, this.authenticator, options);
    if (refusal !== undefined) throw refusal;
  }

  /** Throws `permission_denied` for requests through untrusted proxies. */
  checkProxy(request: AccessRequest): void {
    const refusal = proxyRefusal(request, this.authenticator);
    if (refusal !== undefined) throw refusal;
  }

  /**
   * As {@link admit}, for requests whose origin is checked elsewhere. A wrong key counts, and `rate_limited` is thrown
   * for too many.
   */
  identify(request: AccessRequest): Principal {
    const network = remoteNetwork(request.remoteAddress);
    const shown = this.authenticator.shown(request);
    // Guesses are limited before they are checked. A key that cannot be guessed is always checked, so that others
    // behind the same address do not lock out its holder.
    if (shown !== undefined && isGuessable(shown)) refuseFor(this.#failures.waitMs(network), "wrong keys");
    const principal = this.authenticator.authenticate(request);
    // The server that relays it has counted it.
    if (request.isRelayed === true && principal.kind !== "none") return principal;
    if (principal.kind === "key") refuseFor(this.#byKey?.take(principal.id), "requests");
    else refuseFor(this.#byAddress?.take(network), "requests");
    if (shown !== undefined && principal.kind === "none") this.#countFailure(network, request);
    return principal;
  }

  /** Limits the rate of a caller without a key, by its address. */
  countCaller({ remoteAddress, isRelayed }: AccessRequest): void {
    if (isRelayed === true) return;
    refuseFor(this.#byAddress?.take(remoteNetwork(remoteAddress)), "requests");
  }

  /** For a credential that only a search can find: limits the guesses of an address. Throws `rate_limited`. */
  async guess<Found>(request: AccessRequest, search: () => Promise<Found | undefined>): Promise<Found | undefined> {
    const network = remoteNetwork(request.remoteAddress);
    refuseFor(this.#failures.waitMs(network), "wrong keys");
    const found = await search();
    if (found === undefined) this.#countFailure(network, request);
    return found;
  }

  #countFailure(network: string, { remoteAddress }: AccessRequest): void {
    refuseFor(this.#failures.take(network), "wrong keys");
    const what = "authenticate";
    this.#audit.record({ who: NOBODY, what, outcome: "refused", code: "unauthorized", address: remoteAddress });
  }
}

function refuseFor(waitMs: number | undefined, what: string): void {
  if (waitMs === undefined || waitMs === 0) return;
  const seconds = Math.ceil(waitMs / 1000);
  throw new SandboxerError("rate_limited", `Too many ${what}; try again in ${seconds} s.`, {
    details: { retry_after_seconds: seconds },
  });
}

/**
 * The unit of address limits: an IPv4 address, or the /64 of an IPv6 address, which is the least that one customer of a
 * provider has.
 */
export function remoteNetwork(address: string | undefined): string {
  if (address === undefined) return "unknown";
  const mapped = /^::ffff:(\d+\.\d+\.\d+\.\d+)$/i.exec(address)?.[1];
  if (mapped !== undefined) return mapped;
  if (!isIPv6(address)) return address;
  const [head = "", tail] = (address.split("%")[0] ?? "").split("::");
  const groups = head === "" ? [] : head.split(":");
  const after = tail === undefined || tail === "" ? 0 : tail.split(":").length;
  const zeros = tail === undefined ? 0 : 8 - groups.length - after;
  const all = [...groups, ...Array.from({ length: zeros }, () => "0"), ...(tail ?? "").split(":")];
  const network = all.slice(0, 4).map((group) => Number.parseInt(group, 16).toString(16));
  return `${network.join(":")}::/64`;
}
