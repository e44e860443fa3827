import { appendFileSync } from "node:fs";
import { asSandboxerError, SandboxerError, type ErrorCode } from "@sandboxer/protocol";
import type { Logger } from "pino";
import type { Clock } from "../../support/clock.ts";
import type { Principal } from "./principal.ts";

export interface AuditEntry {
  readonly who: Principal;
  /** The verb: `create`, `execute`, `kill_sandbox`. Never the executed or written content. */
  readonly what: string;
  readonly sandboxId?: string | undefined;
  readonly snapshotId?: string | undefined;
  /** The epoch of the ownership during the action. */
  readonly epoch?: number | undefined;
  /** `refused`: the caller lacks permission. */
  readonly outcome: "ok" | "failed" | "refused";
  readonly code?: ErrorCode | undefined;
  /** The caller's address. */
  readonly address?: string | undefined;
}

export interface AuditLogOptions {
  readonly log: Logger;
  /** A file that gets the same lines; undefined: none. */
  readonly file: string | undefined;
  readonly clock: Pick<Clock, "wallMs">;
}

type AuditSubject = Omit<AuditEntry, "outcome" | "code">;

const REFUSALS: ReadonlySet<ErrorCode> = new Set(["unauthorized", "permission_denied", "rate_limited"]);

/** One line for each change, or attempt at one. */
export class AuditLog {
  readonly #options: AuditLogOptions;

  /** Throws if the file cannot be written: the server must not run without its audit trail. */
  constructor(options: AuditLogOptions) {
    this.#options = options;
    if (options.file !== undefined) checkWritable(options.file);
  }

  record(entry: AuditEntry): void {
    const { log, file, clock } = this.#options;
    const line = auditLine(entry);
    log.info({ audit: true, ...line }, `${entry.what}: ${entry.outcome}`);
    if (file === undefined) return;
    try {
      // Opened each time, so that the file can be moved away at any moment.
      append(file, `${JSON.stringify({ time: new Date(clock.wallMs()).toISOString(), ...line })}\n`);
    } catch (error) {
      log.error({ err: error }, "the audit file cannot be written");
    }
  }

  /** Runs an action and records its result. `subjectOf`: for a subject that is known only afterwards. */
  async around<Result>(
    subject: AuditSubject,
    action: () => Promise<Result>,
    subjectOf?: (result: Result) => Partial<AuditSubject>,
  ): Promise<Result> {
    try {
      const result = await action();
      this.record({ ...subject, ...subjectOf?.(result), outcome: "ok" });
      return result;
    } catch (error) {
      this.record({ ...subject, ...outcomeOf(error) });
      throw error;
    }
  }
}

/** The outcome of an action that may have thrown. */
export function outcomeOf(error: unknown): Pick<AuditEntry, "outcome" | "code"> {
  if (error === undefined) return { outcome: "ok" };
  const { code } = asSandboxerError(error);
  return { outcome: REFUSALS.has(code) ? "refused" : "failed", code };
}

function auditLine(entry: AuditEntry): Record<string, unknown> {
  const { who, what, sandboxId, snapshotId, epoch, outcome, code, address } = entry;
  const subject = { sandbox_id: sandboxId, snapshot_id: snapshotId, epoch };
  return { who: who.id, name: who.name, what, ...subject, outcome, code, address };
}

function append(file: string, text: string): void {
  appendFileSync(file, text, { mode: 0o600 });
}

function checkWritable(file: string): void {
  try {
    append(file, "");
  } catch (error) {
    throw new SandboxerError("bad_request", `The audit file ${file} cannot be written: ${(error as Error).message}.`, {
      hint: "Create its folder, or choose another file with --audit-file.",
      cause: error,
    });
  }
}
