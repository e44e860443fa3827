import { SandboxerError, type ErrorCode } from "@sandboxer/protocol";

/** Linux error numbers of the agent that mean something to a user. */
const CODES: Readonly<Record<number, ErrorCode>> = {
  1: "permission_denied", // EPERM
  2: "file_not_found", // ENOENT
  3: "process_not_found", // ESRCH
  11: "limit_reached", // EAGAIN
  12: "limit_reached", // ENOMEM
  13: "permission_denied", // EACCES
  16: "wrong_state", // EBUSY
  27: "limit_reached", // EFBIG
  28: "no_space", // ENOSPC
  30: "permission_denied", // EROFS
  32: "wrong_state", // EPIPE
  38: "not_supported", // ENOSYS
  98: "wrong_state", // EADDRINUSE
  111: "backend_unavailable", // ECONNREFUSED
};

export function agentError(errno: number, message: string): SandboxerError {
  return new SandboxerError(CODES[errno] ?? "bad_request", message, { details: { errno } });
}

export function errnoOf(thrown: unknown): number | undefined {
  const errno = thrown instanceof SandboxerError ? thrown.details["errno"] : undefined;
  return typeof errno === "number" ? errno : undefined;
}
