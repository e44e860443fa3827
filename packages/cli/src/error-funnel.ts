import { asSandboxerError } from "@sandboxer/protocol";
import type { Io } from "./io.ts";

/** Every failure of every command ends here: one shape for people, one for programs, the exit code of the table. */
export function reportError(thrown: unknown, argv: readonly string[], io: Pick<Io, "stdout" | "stderr">): number {
  const error = asSandboxerError(thrown);
  if (argv.includes("--json")) {
    const { code, message, hint } = error;
    io.stdout(`${JSON.stringify({ error: { code, message, hint } })}\n`);
  } else {
    io.stderr(`sandboxer: ${error.message}\n  ${error.hint}\n`);
    // What nobody foresaw needs the place where it happened.
    if (error.code === "internal" && error.cause instanceof Error) io.stderr(`${error.cause.stack ?? ""}\n`);
  }
  return error.row.exitCode;
}
