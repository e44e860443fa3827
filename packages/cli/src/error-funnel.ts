import { asSandboxerError } from "@sandboxer/protocol/errors";
import { asTyped } from "./command-name.ts";
import type { Io } from "./io.ts";
import { visibleLines } from "./output/table.ts";

/** Reports every failure of every command: one form for people, one for programs, and the exit code of the table. */
export function reportError(thrown: unknown, json: boolean, io: Pick<Io, "stdout" | "stderr" | "env">): number {
  const error = asSandboxerError(thrown);
  const { code, message, details, row } = error;
  // The SDK does not know this program's options for choosing a server.
  const hint = asTyped(code === "server_unreachable" && "url" in details ? row.hint : error.hint, io);
  if (json) {
    io.stdout(`${JSON.stringify({ error: { code, message, hint, retryable: row.retryable, details } })}\n`);
  } else {
    // A message may quote text from a sandbox.
    io.stderr(`sandboxer: ${visibleLines(message)}\n  ${visibleLines(hint)}\n`);
    // An unexpected error needs its stack.
    if (code === "internal" && error.cause instanceof Error) io.stderr(`${error.cause.stack ?? ""}\n`);
  }
  return row.exitCode;
}
