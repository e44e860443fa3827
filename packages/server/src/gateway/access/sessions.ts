import { randomBytes } from "node:crypto";
import type { Clock } from "../../support/clock.ts";
import { digest } from "./key-text.ts";
import type { Principal } from "./principal.ts";

export const SESSION_MS = 12 * 60 * 60_000;
const MAX_SESSIONS = 1_000;

interface Session {
  readonly principal: Principal;
  /**
   * The key that the session was opened with, for calls to other servers of the store on the holder's behalf. Never
   * shown to anyone else.
   */
  readonly key: string;
  readonly endsAtMs: number;
}

/** Browser sessions. In memory: a restart of the server ends every session. */
export class Sessions {
  readonly #clock: Pick<Clock, "monotonicMs">;
  /** By the hash of the cookie, so that the time of a look-up reveals nothing. Oldest first. */
  readonly #sessions = new Map<string, Session>();

  constructor(clock: Pick<Clock, "monotonicMs">) {
    this.#clock = clock;
  }

  /** The cookie text of a new session. The oldest session is dropped if there are too many. */
  open(principal: Principal, key: string): string {
    const text = randomBytes(32).toString("base64url");
    const [oldest] = this.#sessions.keys();
    if (oldest !== undefined && this.#sessions.size >= MAX_SESSIONS) this.#sessions.delete(oldest);
    this.#sessions.set(nameOf(text), { principal, key, endsAtMs: this.#clock.monotonicMs() + SESSION_MS });
    return text;
  }

  find(text: string): Pick<Session, "principal" | "key"> | undefined {
    const session = this.#sessions.get(nameOf(text));
    if (session === undefined) return undefined;
    if (this.#clock.monotonicMs() < session.endsAtMs) return session;
    this.close(text);
    return undefined;
  }

  close(text: string): void {
    this.#sessions.delete(nameOf(text));
  }
}

function nameOf(text: string): string {
  return digest(text).toString("hex");
}
