import { SandboxerError, type ErrorCode } from "@sandboxer/protocol";
import type { ShellResult } from "./run-shell.ts";

/** What the tools say in the C locale, which is nearly the same in GNU's, busybox's, dash's and musl's. */
const REASONS: readonly (readonly [text: string, code: ErrorCode, says: string])[] = [
  ["No such file", "file_not_found", "is not there"],
  ["nonexistent", "file_not_found", "is not there"],
  ["Permission denied", "permission_denied", "may not be accessed"],
  ["Operation not permitted", "permission_denied", "may not be changed"],
  ["Read-only file system", "permission_denied", "is on a file system that cannot be written"],
  ["No space left on device", "no_space", "does not fit: the volume is full"],
  ["Disk quota exceeded", "no_space", "does not fit: the quota is used up"],
  ["File exists", "bad_request", "is there already"],
  ["Directory not empty", "bad_request", "is a folder that is not empty"],
  ["Not a directory", "bad_request", "is no folder"],
  ["s a directory", "bad_request", "is a folder"],
];

export function fileError(path: string, result: ShellResult): SandboxerError {
  const said = result.stderr.toLowerCase();
  const reason = REASONS.find(([text]) => said.includes(text.toLowerCase()));
  if (reason !== undefined) return new SandboxerError(reason[1], `${path} ${reason[2]}.`);
  if (result.code === 127) {
    return new SandboxerError("not_supported", `Files need a tool that is not inside: ${result.stderr.trim()}`);
  }
  const last = result.stderr.trim().split("\n").at(-1) ?? "";
  return new SandboxerError("bad_request", `${path}: ${last === "" ? `exit code ${result.code ?? "none"}` : last}`);
}
