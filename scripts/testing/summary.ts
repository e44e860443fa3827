import type { SuiteResult } from "./suite.ts";

/** Lists the result of each suite, then the failures, then the totals alone on the last line. */
export function summaryOf(results: readonly SuiteResult[]): string {
  const lines = results.flatMap((result) => {
    const processor = result.processorMs === undefined ? "" : `, processor ${(result.processorMs / 1000).toFixed(1)} s`;
    const seconds = `${(result.elapsedMs / 1000).toFixed(1)} s${processor}`;
    const left = result.skippedTests.length === 0 ? "" : `, ${result.skippedTests.length} skipped`;
    const outcome =
      result.skippedBecause === undefined
        ? `${result.passed} passed, ${result.failed} failed${left} (${seconds})`
        : `SKIPPED: ${result.skippedBecause}`;
    return [
      `  ${result.title}: ${outcome}`,
      ...[...new Set(result.skippedTests.map(({ name }) => name))].map((name) => `      skipped: ${name}`),
    ];
  });
  const passed = sum(results.map((result) => result.passed));
  const failed = sum(results.map((result) => result.failed));
  const failures = results.flatMap(failureLines);
  const said = failures.length === 0 ? "" : `== Failed\n${failures.join("\n")}\n\n`;
  return `\n== Summary\n${lines.join("\n")}\n\n${said}${passed} passed, ${failed} failed\n`;
}

function failureLines(result: SuiteResult): string[] {
  const indented = (text: string): string[] => text.split("\n").map((line) => `      ${line}`.trimEnd());
  const reasons = (result.failures ?? []).flatMap(({ what, why }) => [`    ${what}`, ...indented(why)]);
  if (result.failed === 0) return [];
  return [`  ${result.title}:${result.skippedBecause === undefined ? "" : ` ${result.skippedBecause}`}`, ...reasons];
}

function sum(numbers: readonly number[]): number {
  return numbers.reduce((total, number) => total + number, 0);
}
