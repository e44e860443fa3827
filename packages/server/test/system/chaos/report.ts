import type { Failure, RunResult } from "./run.ts";

const SHOWN_FAILURES = 5;
const SHOWN_LINES = 60;

/** The actions and violations of a run, with the command that repeats it. */
export function describeResult({ tally, faults, sandboxes, failures, folder }: RunResult, again: string): string {
  const counts = new Map<string, number>();
  for (const { name } of faults) counts.set(name, (counts.get(name) ?? 0) + 1);
  const injected = [...counts].map(([name, count]) => `${count} ${name}`).join(", ");
  return [
    `faults: ${injected}`,
    `sandboxes: ${sandboxes}`,
    ...tally.lines().map((line) => `  ${line}`),
    failures.length === 0 ? "no violation" : `${failures.length} VIOLATIONS`,
    ...failures.slice(0, SHOWN_FAILURES).flatMap(describeFailure),
    ...(folder === undefined ? [] : [`\nlogs of the servers: ${folder}`, `again: ${again}`]),
  ].join("\n");
}

function describeFailure({ violation, sandbox, history }: Failure): string[] {
  const where = sandbox === undefined ? "" : ` (sandbox ${sandbox})`;
  // The history first: where a report is cut, its end is what is shown.
  return [
    "",
    ...history.slice(-SHOWN_LINES).map((line) => `    ${line}`),
    `${violation.rule}${where}: ${violation.what}`,
  ];
}
