import { ERRORS, SandboxerError, type ErrorCode } from "@sandboxer/protocol/errors";

interface WireError {
  readonly code?: unknown;
  readonly message?: unknown;
  readonly hint?: unknown;
  readonly details?: unknown;
}

/** The code for an unknown error of a newer server, by its status. */
const CODE_OF_STATUS: Readonly<Record<number, ErrorCode>> = {
  400: "bad_request",
  401: "unauthorized",
  403: "permission_denied",
  413: "too_large",
  422: "not_supported",
  429: "rate_limited",
  502: "server_unreachable",
  503: "backend_unavailable",
  504: "server_unreachable",
};

/** Converts an unsuccessful response to an error. Reads the body. */
export async function errorOfResponse(response: Response): Promise<SandboxerError> {
  const text = await response.text().catch(() => "");
  return errorOfBody(text, response.status, retryAfterOf(response));
}

export function errorOfBody(
  text: string,
  status: number,
  more: Readonly<Record<string, unknown>> = {},
): SandboxerError {
  const body = parse(text);
  if (body === undefined) {
    const shown = text === "" ? "" : `: ${text.slice(0, 200)}`;
    return new SandboxerError(codeOfStatus(status), `The server answered with ${status}${shown}`, {
      hint: "Check that the URL is that of a sandboxer server and not of a proxy in front of it.",
      details: { ...more, status },
    });
  }
  return errorOfFields(body, status, more);
}

/** An error from a response body, an operation or an event of the server. */
export function errorOfFields(
  { code, message, hint, details }: WireError,
  status = 500,
  more: Readonly<Record<string, unknown>> = {},
): SandboxerError {
  const known = isErrorCode(code) ? code : codeOfStatus(status);
  return new SandboxerError(known, typeof message === "string" ? message : `The server answered with ${status}.`, {
    ...(typeof hint === "string" ? { hint } : {}),
    details: {
      ...(known === code ? {} : { code }),
      ...more,
      ...(typeof details === "object" && details !== null ? details : {}),
    },
  });
}

/** There was no response: the server is unreachable, or the connection broke. */
export function unreachable(url: string, cause: unknown): SandboxerError {
  const reason = reasonOf(cause);
  return new SandboxerError("server_unreachable", `No answer from ${new URL(url).origin}${reason}.`, {
    cause,
    hint: "Check the URL and that a server runs there. `sandboxer serve` starts one.",
    details: { url: new URL(url).origin },
  });
}

export function isSandboxerError(thrown: unknown, ...codes: readonly ErrorCode[]): thrown is SandboxerError {
  return thrown instanceof SandboxerError && (codes.length === 0 || codes.includes(thrown.code));
}

/** Whether the request cannot have reached its server, so that repeating it is safe. */
export function neverSent(error: SandboxerError): boolean {
  // A relaying server reports that it could not relay the call.
  if (error.details["reached"] === false) return true;
  const { cause } = (error.cause ?? {}) as { cause?: { code?: unknown } };
  return cause?.code === "ECONNREFUSED" || cause?.code === "ENOTFOUND" || cause?.code === "EAI_AGAIN";
}

function reasonOf(thrown: unknown): string {
  const { cause, message } = (thrown ?? {}) as { cause?: { message?: unknown; code?: unknown }; message?: unknown };
  const reason = [cause?.message, cause?.code, message].find((text) => typeof text === "string" && text !== "");
  return typeof reason === "string" ? ` (${reason})` : "";
}

function retryAfterOf(response: Response): Record<string, unknown> {
  const seconds = Number(response.headers.get("retry-after") ?? Number.NaN);
  return Number.isFinite(seconds) ? { retry_after_seconds: seconds } : {};
}

function parse(text: string): WireError | undefined {
  try {
    const body = JSON.parse(text) as { error?: unknown } | null;
    return typeof body?.error === "object" && body.error !== null ? body.error : undefined;
  } catch {
    return undefined;
  }
}

function isErrorCode(code: unknown): code is ErrorCode {
  return typeof code === "string" && Object.hasOwn(ERRORS, code);
}

function codeOfStatus(status: number): ErrorCode {
  return CODE_OF_STATUS[status] ?? (status >= 400 && status < 500 ? "bad_request" : "internal");
}
