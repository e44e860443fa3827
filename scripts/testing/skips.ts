import type { AllowedSkip } from "./allowed-skips.ts";
import type { SuiteResult } from "./suite.ts";

/** Whether every skip is allowed; features that a backend lacks are judged by the check of the table of backends. */
export function checkSkips(
  results: readonly SuiteResult[],
  allowed: readonly AllowedSkip[],
): {
  /** The forbidden skips; undefined: there are none. */
  readonly result: SuiteResult | undefined;
  /** A line for each allowed skip that did not happen. */
  readonly unused: readonly string[];
} {
  const skipped = results.flatMap(({ title, skippedTests }) =>
    skippedTests.filter(({ isGap }) => !isGap).map(({ name }) => ({ title, name })),
  );
  const notAllowed = skipped.filter(({ name }) => !allowed.some(({ test }) => test.test(name)));
  const failures = [...new Set(notAllowed.map(({ title, name }) => `${title}: ${name}`))].map((what) => ({
    what,
    why: "It was skipped. Give it what it needs, or allow it with the reason in scripts/testing/allowed-skips.ts.",
  }));
  const unused = allowed
    .filter(({ test }) => !skipped.some(({ name }) => test.test(name)))
    .map(
      ({ test }) =>
        `allowed-skips.ts allows a skip that did not happen: ${test.source}. Remove the entry if no machine needs it.`,
    );
  if (failures.length === 0) return { result: undefined, unused };
  const counts = { passed: 0, failed: failures.length, elapsedMs: 0, skippedTests: [] };
  return { result: { title: "skipped tests", ...counts, failures }, unused };
}
