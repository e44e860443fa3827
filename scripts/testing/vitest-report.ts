import { readFileSync } from "node:fs";

/** The parts of vitest's JSON report that are used here. */
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
  /** Notes of the test about itself, such as why it was skipped. */
  readonly meta?: { readonly lacking?: { readonly reason: string; readonly instead?: string } };
}

export interface SkippedTest {
  readonly name: string;
  /** Its backend does not support it; the check of `docs/reference/backends.md` fails if the page differs. */
  readonly isGap: boolean;
}

export function readVitestReport(path: string): VitestReport {
  return JSON.parse(readFileSync(path, "utf8")) as VitestReport;
}

export function testsOf(report: VitestReport): readonly ReportedTest[] {
  return report.testResults.flatMap((file) => file.assertionResults);
}

/** The skipped tests; if a whole part of a contract was skipped, the part and the reason. */
export function skippedTestsOf(report: VitestReport): SkippedTest[] {
  return testsOf(report)
    .filter((test) => ["skipped", "pending", "todo", "disabled"].includes(test.status))
    .map(({ fullName, ancestorTitles, meta }) =>
      meta?.lacking === undefined
        ? { name: fullName, isGap: false }
        : { name: `${ancestorTitles.join(" ")}: ${meta.lacking.reason}`, isGap: true },
    );
}
