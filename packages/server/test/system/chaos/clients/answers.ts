import { refusalOf, type Answer } from "./call.ts";
import { MISSING_CODES } from "./expected-codes.ts";

/** The response of an exec. */
export interface ExecResult {
  readonly exit_code: number | null;
  readonly stdout: string;
  readonly stderr: string;
}

/** The body of an answer that says yes with this status; undefined for any other. */
export function bodyOf(answer: Answer, status: number): unknown {
  return answer.kind === "answered" && answer.status === status ? answer.body : undefined;
}

/** An answer that is certain to mean that nothing was executed. */
export function isRefused(answer: Answer): boolean {
  if (answer.kind !== "answered") return answer.kind === "unsent";
  const refusal = refusalOf(answer);
  return refusal !== undefined && answer.status < 500 && refusal.details["process_id"] === undefined;
}

/** There is no such sandbox, or no longer. */
export function isMissing(answer: Answer): boolean {
  return MISSING_CODES.has(refusalOf(answer)?.code ?? "");
}

export function timesOf({ sentMs, answeredMs }: Answer): { sentMs: number; answeredMs: number } {
  return { sentMs, answeredMs };
}
