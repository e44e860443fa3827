import type { KeyRing } from "./key-ring.ts";
import { ANONYMOUS, NOBODY, requireScope, type Principal } from "./principal.ts";
import { SESSION_MS, type Sessions } from "./sessions.ts";
import { sessionCookie } from "./session-cookie.ts";
import { shownCredential, type AccessRequest, type ShownCredential } from "./shown-credential.ts";

export interface AuthenticatorOptions {
  readonly keys: KeyRing;
  readonly sessions: Sessions;
  /** Whether the server only listens on this machine, so that without keys every caller is trusted. */
  readonly loopbackOnly: boolean;
  /** The only header that keys are read from, in lower case; undefined: the usual ones. */
  readonly keyHeader?: string | undefined;
}

/** Identifies the caller, for HTTP and WebSocket alike. {@link requireScope} checks permissions. */
export class Authenticator {
  readonly #options: AuthenticatorOptions;

  constructor(options: AuthenticatorOptions) {
    this.#options = options;
  }

  /** Whether every caller may do everything. */
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
    // A session has the permissions of the key that it was opened with.
    return session === undefined ? NOBODY : (keys.find(session.key) ?? NOBODY);
  }

  /**
   * The key of a request, from whichever header, for calls to other servers of the store on the caller's behalf. A
   * secret: only for the header of such a call.
   */
  keyOf(request: AccessRequest): string | undefined {
    const shown = this.shown(request);
    return shown?.kind === "session" ? this.#options.sessions.find(shown.text)?.key : shown?.text;
  }

  /** Whether a text is a key that this server accepts, for requests whose credentials belong to somebody else too. */
  isKey(text: string): boolean {
    return this.#options.keys.find(text) !== undefined;
  }

  /** Whether the caller's key is still valid; long-lived connections check again. */
  isCurrent(principal: Principal): boolean {
    return principal.kind !== "key" || this.#options.keys.isCurrent(principal);
  }

  /**
   * Exchanges the key of a request for a cookie, for browsers: `setCookie` is the header's value. A server without keys
   * has no login and sets none.
   */
  login(request: AccessRequest): { readonly principal: Principal; readonly setCookie: string | undefined } {
    const principal = this.authenticate(request);
    requireScope(principal, "read");
    const key = this.keyOf(request);
    if (principal.kind !== "key" || key === undefined) return { principal, setCookie: undefined };
    const text = this.#options.sessions.open(key);
    return { principal, setCookie: sessionCookie(text, SESSION_MS / 1000, isSecure(request)) };
  }

  /**
   * Ends the session of a request, if it has one: `removeCookie` is the `Set-Cookie` value, and `ended` settles when the
   * other servers can know it.
   */
  logout(request: AccessRequest): { readonly removeCookie: string; readonly ended: Promise<void> } {
    const shown = this.shown(request);
    const ended = shown?.kind === "session" ? this.#options.sessions.close(shown.text) : Promise.resolve();
    return { removeCookie: sessionCookie("", 0, isSecure(request)), ended };
  }
}

/** The page's origin shows whether a proxy uses HTTPS that says nothing of it, or is not trusted. */
function isSecure({ headers, isSecure: isKnown = false }: AccessRequest): boolean {
  return isKnown || headers.origin?.startsWith("https://") === true;
}
