import { asSandboxerError, type ErrorCode, SandboxerError } from "@sandboxer/protocol";
import type { FastifyReply } from "fastify";
import { cutMessage } from "../../support/cut-message.ts";
import { translate } from "../http/error-body.ts";

/** The codes of E2B's statuses, for the audit log. */
const CODES: Readonly<Record<number, ErrorCode>> = {
  400: "bad_request",
  401: "unauthorized",
  403: "permission_denied",
  404: "not_found",
  406: "bad_request",
  409: "wrong_state",
  416: "bad_request",
  501: "not_supported",
  502: "sandbox_not_found",
  507: "no_space",
};

/** An error that only E2B's dialect knows, with E2B's status. */
export class E2bError extends SandboxerError {
  readonly status: number;
  /** Further fields of the body. */
  readonly more: Readonly<Record<string, unknown>>;

  constructor(status: number, message: string, more: Readonly<Record<string, unknown>> = {}) {
    super(CODES[status] ?? "internal", message);
    this.name = "E2bError";
    this.status = status;
    this.more = more;
  }
}

/** E2B's clients decide by `code`, so it is the status. */
export interface E2bErrorBody {
  readonly error_code?: ErrorCode;
  readonly code: number;
  readonly message: string;
}

export interface E2bErrorAnswer {
  readonly status: number;
  readonly headers: Readonly<Record<string, string>>;
  readonly body: E2bErrorBody;
}

/** Our statuses that E2B's clients expect to be others. All others are the same. */
const STATUS: Readonly<Partial<Record<ErrorCode, number>>> = {
  too_large: 400,
  not_supported: 400,
  ttl_too_long: 400,
  checkpoint_disabled: 400,
  image_incompatible: 400,
  sandbox_destroyed: 404,
  stale_epoch: 409,
  image_damaged: 500,
};

/** Refused before anything happened: the same call may be sent again. */
const NOTHING_HAPPENED: ReadonlySet<ErrorCode> = new Set(["starting", "draining", "rate_limited", "limit_reached"]);

/**
 * Converts anything thrown to E2B's shape. Python's client repeats calls by itself after a 502, 503 or 504, also a
 * create; `Should-Retry: false` keeps it from doing so when something may have happened.
 */
export function e2bErrorAnswer(thrown: unknown): E2bErrorAnswer {
  if (thrown instanceof E2bError) {
    const { status, message, more } = thrown;
    const headers: Record<string, string> = status >= 500 ? { "should-retry": "false" } : {};
    return { status, headers, body: { ...more, code: status, message } };
  }
  const error = asSandboxerError(translate(thrown));
  const status = e2bStatus(error);
  const retryAfter = error.details["retry_after_seconds"];
  return {
    status,
    headers: {
      ...(typeof retryAfter === "number" ? { "retry-after": String(Math.ceil(retryAfter)) } : {}),
      ...(status >= 500 && !NOTHING_HAPPENED.has(error.code) ? { "should-retry": "false" } : {}),
    },
    body: { error_code: error.code, code: status, message: cutMessage(`${error.message} ${error.hint}`.trim()) },
  };
}

export function e2bStatus({ code, row }: SandboxerError): number {
  return STATUS[code] ?? row.httpStatus;
}

export function sendE2bError(thrown: unknown, reply: FastifyReply): FastifyReply {
  const { status, headers, body } = e2bErrorAnswer(thrown);
  return reply.code(status).headers(headers).send(body);
}

/** The sandbox of a request does not run: E2B's clients look for this status and these words. */
export function notRunning(sandboxId: string): E2bError {
  return new E2bError(502, "The sandbox was not found", { sandboxId });
}
