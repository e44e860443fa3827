import { asSandboxerError, type ErrorCode, type SandboxerError } from "@sandboxer/protocol";
import { UnknownUserError } from "../../../manager/files/user-space.ts";
import { cutMessage } from "../../../support/cut-message.ts";
import { translate } from "../../http/error-body.ts";

/** The codes of the Connect protocol, with the HTTP status of a unary answer. */
export const CONNECT_STATUS = {
  canceled: 499,
  unknown: 500,
  invalid_argument: 400,
  deadline_exceeded: 504,
  not_found: 404,
  already_exists: 409,
  permission_denied: 403,
  resource_exhausted: 429,
  failed_precondition: 400,
  unimplemented: 501,
  internal: 500,
  unavailable: 503,
  unauthenticated: 401,
} as const;

export type ConnectCode = keyof typeof CONNECT_STATUS;

/** An error of a call in the Connect protocol. */
export class ConnectError extends Error {
  readonly code: ConnectCode;

  constructor(code: ConnectCode, message: string, options?: ErrorOptions) {
    super(message, options);
    this.name = "ConnectError";
    this.code = code;
  }
}

const CODES: Readonly<Partial<Record<ErrorCode, ConnectCode>>> = {
  bad_request: "invalid_argument",
  too_large: "resource_exhausted",
  unauthorized: "unauthenticated",
  permission_denied: "permission_denied",
  file_not_found: "not_found",
  process_not_found: "not_found",
  not_supported: "unimplemented",
  limit_reached: "resource_exhausted",
  rate_limited: "resource_exhausted",
  no_space: "resource_exhausted",
  wrong_state: "failed_precondition",
  timeout: "deadline_exceeded",
  sandbox_failed: "unavailable",
  backend_unavailable: "unavailable",
  store_unavailable: "unavailable",
  starting: "unavailable",
  draining: "unavailable",
};

export function connectErrorOf(thrown: unknown): ConnectError {
  if (thrown instanceof ConnectError) return thrown;
  const error = asSandboxerError(translate(thrown));
  const code = thrown instanceof UnknownUserError ? "unauthenticated" : (CODES[error.code] ?? codeOf(error));
  return new ConnectError(code, cutMessage(`${error.message} ${error.hint ?? ""}`.trim()), { cause: thrown });
}

function codeOf({ row }: SandboxerError): ConnectCode {
  if (row.httpStatus < 500) return "failed_precondition";
  return row.httpStatus === 503 ? "unavailable" : "internal";
}

export interface ConnectErrorBody {
  readonly code: ConnectCode;
  readonly message: string;
}

export function connectErrorBody({ code, message }: ConnectError): ConnectErrorBody {
  return { code, message };
}
