import { relative } from "node:path";
import { stripVTControlCharacters } from "node:util";
import type { VitestReport } from "./vitest-report.ts";

/** A failure as it is printed at the end of `npm test`, for readers who see only the end of the output. */
export interface Failure {
  /** The full name of a test and its file; a file that could not be run; the suite itself. */
  readonly what: string;
  readonly why: string;
}

const ERROR_LINES = 12;
const OUTPUT_LINES = 30;

/** The tests that failed, and the files whose tests could not even be run. */
export function failuresOf(report: VitestReport, root: string): Failure[] {
  return report.testResults.flatMap((file) => {
    const path = relative(root, file.name);
    const tests = file.assertionResults
      .filter(({ status }) => status === "failed")
      .map((test) => ({
        what: `${test.fullName} (${path})`,
        why: (test.failureMessages ?? []).map((message) => firstLines(message)).join("\n"),
      }));
    if (tests.length > 0 || file.status !== "failed") return tests;
    return [{ what: path, why: firstLines(file.message ?? "") }];
  });
}

/** A failure that no test reports: the end of the output of the suite. */
export function failureOfOutput(title: string, output: string): Failure {
  const lines = plainLines(output);
  const left = lines.length - OUTPUT_LINES;
  return { what: title, why: [...(left > 0 ? ["…"] : []), ...lines.slice(-OUTPUT_LINES)].join("\n") };
}

function firstLines(message: string): string {
  const lines = plainLines(message);
  return [...lines.slice(0, ERROR_LINES), ...(lines.length > ERROR_LINES ? ["…"] : [])].join("\n");
}

function plainLines(text: string): string[] {
  return stripVTControlCharacters(text).trimEnd().split("\n");
}
