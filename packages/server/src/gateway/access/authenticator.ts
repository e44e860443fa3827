import type { KeyRing } from "./key-ring.ts";
import { ANONYMOUS, NOBODY, requireScope, type Principal } from "./principal.ts";
import { SESSION_MS, type Sessions } from "./sessions.ts";
import { sessionCookie } from "./session-cookie.ts";
import { shownCredential, type AccessRequest, type ShownCredential } from "./shown-credential.ts";

export interface AuthenticatorOptions {
  readonly keys: KeyRing;
  readonly sessions: Sessions;
  /** Whether the server listens to this machine only, so that without keys whoever reaches it is trusted. */
  readonly loopbackOnly: boolean;
  /** The one header that keys are read from, in lower case; undefined: those that are usual. */
  readonly keyHeader?: string | undefined;
}

/** Says who asks, for HTTP and WebSocket alike. What they may do is for {@link requireScope}. */
export class Authenticator {
  readonly #options: AuthenticatorOptions;

  constructor(options: AuthenticatorOptions) {
    this.#options = options;
  }

  /** Whether anyone who reaches the server may do everything. */
  get open(): boolean {
    return this.#options.loopbackOnly && !this.#options.keys.required;
  }

  shown(request: AccessRequest): ShownCredential | undefined {
    return shownCredential(request, this.#options.keyHeader);
  }

  authenticate(request: AccessRequest): Principal {
    if (this.open) return ANONYMOUS;
    const { keys, sessions } = this.#options;
    const shown = this.shown(request);
    if (shown === undefined) return NOBODY;
    if (shown.kind === "key") return keys.find(shown.text) ?? NOBODY;
    const session = sessions.find(shown.text);
    // A session is worth as much as the key that it was opened with.
    return session !== undefined && keys.isCurrent(session.principal) ? session.principal : NOBODY;
  }

  /**
   * The key of a request, however it came, for calls to other servers of the store on behalf of whoever sent it. A secret:
   * for the header of such a call only.
   */
  keyOf(request: AccessRequest): string | undefined {
    const shown = this.shown(request);
    return shown?.kind === "session" ? this.#options.sessions.find(shown.text)?.key : shown?.text;
  }

  /** Whether the key that somebody was let in with is still taken; what stays open for long asks again. */
  isCurrent(principal: Principal): boolean {
    return principal.kind !== "key" || this.#options.keys.isCurrent(principal);
  }

  /**
   * Exchanges the key of a request for a cookie, for browsers: `setCookie` is the header's value. A server without keys
   * has nothing to log in to, and sets none.
   */
  login(request: AccessRequest): { readonly principal: Principal; readonly setCookie: string | undefined } {
    const principal = this.authenticate(request);
    requireScope(principal, "read");
    const key = this.keyOf(request);
    if (principal.kind !== "key" || key === undefined) return { principal, setCookie: undefined };
    const text = this.#options.sessions.open(principal, key);
    return { principal, setCookie: sessionCookie(text, SESSION_MS / 1000, isSecure(request)) };
  }

  /** Ends the session of a request, if it has one; the value of `Set-Cookie` that makes the browser forget it. */
  logout(request: AccessRequest): string {
    const shown = this.shown(request);
    if (shown?.kind === "session") this.#options.sessions.close(shown.text);
    return sessionCookie("", 0, isSecure(request));
  }
}

/** The server itself speaks plain HTTP; a page's origin says whether a proxy in front of it does not. */
function isSecure({ headers }: AccessRequest): boolean {
  return headers.origin?.startsWith("https://") === true;
}
