import { SandboxerError } from "@sandboxer/protocol";

const PLAIN = /^[A-Za-z0-9_/:.,+@%-]+$/;

/** Quotes one argument for a POSIX shell with single quotes. */
export function quoteForShell(argument: string): string {
  if (argument.includes("\0")) {
    throw new SandboxerError(
      "bad_request",
      `${JSON.stringify(argument)} contains a NUL byte, which is not allowed in an argument.`,
    );
  }
  return PLAIN.test(argument) ? argument : `'${argument.replaceAll("'", `'\\''`)}'`;
}

export function shellCommand(argv: readonly string[]): string {
  return argv.map(quoteForShell).join(" ");
}
