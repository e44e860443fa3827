import type { Scope } from "@sandboxer/protocol";
import { outcomeOf, type AuditEntry, type AuditLog } from "./audit-log.ts";
import { requireScope, type Principal } from "./principal.ts";

type Subject = Pick<AuditEntry, "sandboxId" | "epoch">;

/** An admitted caller whose actions are recorded in the audit log. */
export class Actor {
  readonly who: Principal;
  readonly #audit: AuditLog;
  readonly #address: string | undefined;

  constructor(who: Principal, audit: AuditLog, address: string | undefined) {
    this.who = who;
    this.#audit = audit;
    this.#address = address;
  }

  /** Throws if the caller lacks the scope, and records that. Anonymous calls are not audited. */
  require(scope: Scope, what: string, subject: Subject = {}): void {
    try {
      requireScope(this.who, scope);
    } catch (error) {
      if (this.who.kind !== "none") {
        this.#audit.record({ who: this.who, what, address: this.#address, ...subject, ...outcomeOf(error) });
      }
      throw error;
    }
  }

  /** Runs an action and records its result. `subjectOf`: for a subject that is known only afterwards. */
  async does<Result>(
    what: string,
    subject: Subject,
    action: () => Promise<Result>,
    subjectOf?: (result: Result) => Subject,
  ): Promise<Result> {
    return await this.#audit.around({ who: this.who, what, address: this.#address, ...subject }, action, subjectOf);
  }
}
