import { appendFileSync } from "node:fs";
import { asSandboxerError, SandboxerError, type ErrorCode } from "@sandboxer/protocol";
import type { Logger } from "pino";
import type { Clock } from "../../support/clock.ts";
import type { Principal } from "./principal.ts";

export interface AuditEntry {
  readonly who: Principal;
  /** The verb: `create`, `execute`, `kill_sandbox`. Never what was executed or written. */
  readonly what: string;
  readonly sandboxId?: string | undefined;
  readonly snapshotId?: string | undefined;
  /** Of the ownership under which it was done. */
  readonly epoch?: number | undefined;
  /** `refused`: who asked may not. */
  readonly outcome: "ok" | "failed" | "refused";
  readonly code?: ErrorCode | undefined;
  /** Where from. */
  readonly address?: string | undefined;
}

export interface AuditLogOptions {
  readonly log: Logger;
  /** Gets the same lines; undefined: none. */
  readonly file: string | undefined;
  readonly clock: Pick<Clock, "wallMs">;
}

type AuditSubject = Omit<AuditEntry, "outcome" | "code">;

const REFUSALS: ReadonlySet<ErrorCode> = new Set(["unauthorized", "permission_denied", "rate_limited"]);

/** One line for each thing that somebody changed, or tried to. */
export class AuditLog {
  readonly #options: AuditLogOptions;

  /** Throws when the file cannot be written: better no server than one whose trace is missing. */
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
      // Opened each time, so that the file may be moved away at any moment.
      append(file, `${JSON.stringify({ time: new Date(clock.wallMs()).toISOString(), ...line })}\n`);
    } catch (error) {
      log.error({ err: error }, "the audit file cannot be written");
    }
  }

  /** Does it, and records how it went. `subjectOf`: what is known of the subject only afterwards. */
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

/** How something went that may have thrown. */
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
