import { randomUUID } from "node:crypto";
import { parseObject, SandboxerError } from "@sandboxer/protocol";
import { z } from "zod";
import type { SharedRecords } from "./shared-records.ts";
import type { Clock } from "../../support/clock.ts";
import type { PeerSecret } from "./peer-secret.ts";
import { openText, sealText } from "./sealed-text.ts";

export const SESSION_MS = 12 * 60 * 60_000;
/** How long a logout at another server may go unnoticed while a session is used. */
const LOOK_EVERY_MS = 30_000;
const MAX_TRACKED = 10_000;

const sessionSchema = z.object({
  id: z.uuid(),
  /**
   * The key that the session was opened with. The session has its permissions, also at other servers of the store, which
   * are called with it on the holder's behalf.
   */
  key: z.string(),
  began: z.number(),
});

type Session = z.infer<typeof sessionSchema>;

export interface SessionsOptions {
  readonly clock: Pick<Clock, "wallMs" | "monotonicMs">;
  /** The shared secret of the store's servers; undefined until it is known. */
  readonly secret: () => PeerSecret | undefined;
  /** Undefined: no other server shares the sessions, or the store is not open yet. */
  readonly records: () => SharedRecords | undefined;
}

/**
 * Browser sessions. The cookie is the session: sealed with a key that only the servers of the store have, so that each
 * of them can open it and none keeps it. Only the end of a session is recorded in the store.
 */
export class Sessions {
  readonly #options: SessionsOptions;
  /** When each session was last looked for among the logouts; `true`: it has ended. Oldest first. */
  readonly #looks = new Map<string, number | true>();

  constructor(options: SessionsOptions) {
    this.#options = options;
  }

  /** The cookie text of a new session. */
  open(key: string): string {
    const session: Session = { id: randomUUID(), key, began: this.#options.clock.wallMs() };
    const seal = this.#keys();
    if (seal === undefined) throw new SandboxerError("starting", "The server is starting.");
    return sealText(seal, JSON.stringify(session));
  }

  find(text: string): Pick<Session, "key"> | undefined {
    const session = this.#read(text);
    if (session === undefined || this.#looks.get(session.id) === true) return undefined;
    this.#lookIfDue(session);
    return session;
  }

  /** Ends it here at once, and at the other servers when they look. */
  async close(text: string): Promise<void> {
    const session = this.#read(text);
    if (session === undefined) return;
    this.#note(session.id, true);
    const records = this.#options.records();
    await records?.swap(logoutOf(records, session), undefined, Buffer.from('{"format":1}\n'));
  }

  #read(text: string): Session | undefined {
    const seal = this.#keys();
    const opened = seal === undefined ? undefined : openText(seal, text);
    const session = opened === undefined ? undefined : sessionSchema.safeParse(parseObject(opened)).data;
    return session !== undefined && this.#options.clock.wallMs() < session.began + SESSION_MS ? session : undefined;
  }

  #keys(): readonly Buffer[] | undefined {
    return this.#options.secret()?.keysFor("sessions");
  }

  #lookIfDue(session: Session): void {
    const { clock, records } = this.#options;
    const nowMs = clock.monotonicMs();
    const last = this.#looks.get(session.id);
    const shared = records();
    if (shared === undefined || (typeof last === "number" && nowMs - last < LOOK_EVERY_MS)) return;
    this.#note(session.id, nowMs);
    void shared.find([logoutOf(shared, session)]).then(
      (found) => found !== undefined && this.#note(session.id, true),
      // The next use looks again.
      () => this.#looks.get(session.id) === nowMs && this.#looks.delete(session.id),
    );
  }

  #note(id: string, look: number | true): void {
    this.#looks.delete(id);
    this.#looks.set(id, look);
    const [oldest] = this.#looks.keys();
    if (oldest !== undefined && this.#looks.size > MAX_TRACKED) this.#looks.delete(oldest);
  }
}

function logoutOf(records: SharedRecords, { id, began }: Session): string {
  return records.keyOf("logouts", id, began);
}
