import { readFileSync } from "node:fs";

/** What is used here of vitest's JSON report. */
export interface VitestReport {
  readonly numPassedTests: number;
  readonly numFailedTests: number;
  readonly testResults: readonly ReportedFile[];
}

interface ReportedFile {
  /** Its whole path. */
  readonly name: string;
  readonly status: string;
  /** Why a file could not be run. */
  readonly message?: string;
  readonly assertionResults: readonly ReportedTest[];
}

export interface ReportedTest {
  readonly ancestorTitles: readonly string[];
  readonly fullName: string;
  readonly status: string;
  readonly failureMessages?: readonly string[] | null;
  /** What the test has noted of itself, such as why it was skipped. */
  readonly meta?: { readonly lacking?: { readonly reason: string; readonly instead?: string } };
}

export function readVitestReport(path: string): VitestReport {
  return JSON.parse(readFileSync(path, "utf8")) as VitestReport;
}

export function testsOf(report: VitestReport): readonly ReportedTest[] {
  return report.testResults.flatMap((file) => file.assertionResults);
}

/** The names of tests that were skipped; where a whole part of a contract was, the part and why. */
export function skippedTestsOf(report: VitestReport): string[] {
  return testsOf(report)
    .filter((test) => ["skipped", "pending", "todo", "disabled"].includes(test.status))
    .map(({ fullName, ancestorTitles, meta }) =>
      meta?.lacking === undefined ? fullName : `${ancestorTitles.join(" ")}: ${meta.lacking.reason}`,
    );
}
