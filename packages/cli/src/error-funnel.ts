import { asSandboxerError } from "@sandboxer/protocol/errors";
import { asTyped } from "./command-name.ts";
import type { Io } from "./io.ts";
import { visibleLines } from "./output/table.ts";

/** Every failure of every command ends here: one shape for people, one for programs, the exit code of the table. */
export function reportError(thrown: unknown, json: boolean, io: Pick<Io, "stdout" | "stderr" | "env">): number {
  const error = asSandboxerError(thrown);
  const { code, message, details, row } = error;
  // The SDK cannot know how this program is told where the server is that did not answer.
  const hint = asTyped(code === "server_unreachable" && "url" in details ? row.hint : error.hint, io);
  if (json) {
    io.stdout(`${JSON.stringify({ error: { code, message, hint, retryable: row.retryable, details } })}\n`);
  } else {
    // A message may quote what a sandbox made up.
    io.stderr(`sandboxer: ${visibleLines(message)}\n  ${visibleLines(hint)}\n`);
    // What nobody foresaw needs the place where it happened.
    if (code === "internal" && error.cause instanceof Error) io.stderr(`${error.cause.stack ?? ""}\n`);
  }
  return row.exitCode;
}
