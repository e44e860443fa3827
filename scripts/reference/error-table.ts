import { ERRORS } from "@sandboxer/protocol";

/** Every error code with its HTTP status, its exit code and its hint. */
export function errorTable(): string {
  const rows = Object.entries(ERRORS).map(
    ([code, { httpStatus, retryable, exitCode, hint }]) =>
      `| \`${code}\` | ${httpStatus} | ${retryable ? "yes" : "no"} | ${exitCode} | ${hint} |`,
  );
  return ["| code | HTTP status | retry | exit code | what to do |", "|---|---|---|---|---|", ...rows].join("\n");
}
