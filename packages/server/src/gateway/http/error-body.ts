import { asSandboxerError, SandboxerError, type ErrorBody } from "@sandboxer/protocol";
import type { FastifyReply } from "fastify";
import { hasZodFastifySchemaValidationErrors } from "fastify-type-provider-zod";
import { cutMessage } from "../../support/cut-message.ts";

/** Converts anything thrown to the status and body that clients know. */
export function errorAnswer(thrown: unknown): { status: number; body: ErrorBody } {
  const error = translate(thrown);
  const { code, hint, details, row } = error;
  const message = cutMessage(error.message);
  return { status: row.httpStatus, body: { error: { code, message, hint, retryable: row.retryable, details } } };
}

export function sendError(thrown: unknown, reply: FastifyReply): FastifyReply {
  const { status, body } = errorAnswer(thrown);
  const retryAfter = body.error.details["retry_after_seconds"];
  if (typeof retryAfter === "number") reply.header("retry-after", Math.ceil(retryAfter));
  return reply.code(status).send(body);
}

/** Errors of the HTTP library become ours. */
export function translate(thrown: unknown): SandboxerError {
  if (hasZodFastifySchemaValidationErrors(thrown)) {
    const problems = thrown.validation.map(({ instancePath, message }) => {
      const where = instancePath.replace(/^\//, "").replaceAll("/", ".");
      return where === "" ? (message ?? "is invalid") : `${where}: ${message ?? "is invalid"}`;
    });
    const where = thrown.validationContext ?? "request";
    return new SandboxerError("bad_request", `The ${where} is not valid: ${problems.join("; ")}`);
  }
  const { statusCode, message } = thrown as { statusCode?: number; message?: string };
  // Errors of the HTTP library itself: invalid JSON, or a body that is too large.
  if (statusCode === 413) return new SandboxerError("too_large", message ?? "The body is too large.");
  if (statusCode !== undefined && statusCode >= 400 && statusCode < 500) {
    return new SandboxerError("bad_request", message ?? "The request is not valid.");
  }
  return asSandboxerError(thrown);
}
