import { ERRORS } from "@sandboxer/protocol";

/** `docs/reference/errors.md`, made of the one table. Run this file to write it; a test compares the two. */
export function errorTable(): string {
  const rows = Object.entries(ERRORS).map(
    ([code, { httpStatus, retryable, exitCode, hint }]) =>
      `| \`${code}\` | ${httpStatus} | ${retryable ? "yes" : "no"} | ${exitCode} | ${hint} |`,
  );
  return [
    "# Errors",
    "",
    "Every error that a user can meet. Made by `node scripts/error-table.ts > docs/reference/errors.md`.",
    "",
    "| code | HTTP status | may succeed later | exit code | what to do |",
    "|---|---|---|---|---|",
    ...rows,
    "",
  ].join("\n");
}

if (import.meta.main) process.stdout.write(errorTable());
