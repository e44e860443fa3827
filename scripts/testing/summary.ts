import type { SuiteResult } from "./suite.ts";

/** Says what each suite did, then the totals alone on the last line. True when nothing failed. */
export function printSummary(results: readonly SuiteResult[]): boolean {
  const lines = results.flatMap((result) => {
    const seconds = `${(result.elapsedMs / 1000).toFixed(1)} s`;
    const left = result.skippedTests.length === 0 ? "" : `, ${result.skippedTests.length} skipped`;
    const outcome =
      result.skippedBecause === undefined
        ? `${result.passed} passed, ${result.failed} failed${left} (${seconds})`
        : `SKIPPED: ${result.skippedBecause}`;
    return [
      `  ${result.title}: ${outcome}`,
      ...[...new Set(result.skippedTests)].map((name) => `      skipped: ${name}`),
    ];
  });
  const passed = sum(results.map((result) => result.passed));
  const failed = sum(results.map((result) => result.failed));
  process.stdout.write(`\n== Summary\n${lines.join("\n")}\n\n${passed} passed, ${failed} failed\n`);
  return failed === 0;
}

function sum(numbers: readonly number[]): number {
  return numbers.reduce((total, number) => total + number, 0);
}
