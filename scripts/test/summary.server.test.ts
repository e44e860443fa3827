import { mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { expect, onTestFinished, test, vi } from "vitest";
import { failureOfOutput, failuresOf } from "../testing/failures.ts";
import { runSuite } from "../testing/run-suite.ts";
import { vitestSuite, type SuiteResult } from "../testing/suite.ts";
import { summaryOf } from "../testing/summary.ts";

const passed: SuiteResult = {
  title: "unit",
  passed: 3,
  failed: 0,
  elapsedMs: 1500,
  processorMs: 2400,
  skippedTests: [{ name: "a gap", isGap: true }],
};

test("without a failure, the totals follow what each suite did", () => {
  expect(summaryOf([passed])).toBe(
    "\n== Summary\n  unit: 3 passed, 0 failed, 1 skipped (1.5 s, processor 2.4 s)\n      skipped: a gap\n\n3 passed, 0 failed\n",
  );
});

test("failures stand directly before the totals, with the reason", () => {
  const failing: SuiteResult = {
    ...passed,
    title: "gvisor on runsc",
    failed: 1,
    failures: [{ what: "a part a test (packages/x.test.ts)", why: "Error: broken\n    at x.test.ts:3" }],
  };
  const left: SuiteResult = { ...passed, title: "stores", passed: 0, failed: 1, skippedBecause: "No server here." };
  expect(summaryOf([passed, failing, left]).split("\n").slice(-10)).toEqual([
    "",
    "== Failed",
    "  gvisor on runsc:",
    "    a part a test (packages/x.test.ts)",
    "      Error: broken",
    "          at x.test.ts:3",
    "  stores: No server here.",
    "",
    "6 passed, 2 failed",
    "",
  ]);
});

test("of a report: failed tests by their full names, files that cannot be run, the first lines of each error", () => {
  const long = Array.from({ length: 40 }, (_, line) => `line ${line}`).join("\n");
  const test = { ancestorTitles: ["a part"], fullName: "a part a test" };
  const report = {
    numPassedTests: 1,
    numFailedTests: 1,
    testResults: [
      {
        name: "/root/packages/x.test.ts",
        status: "failed",
        assertionResults: [
          { ...test, status: "passed", failureMessages: [] },
          {
            ...test,
            fullName: "a part fails",
            status: "failed",
            failureMessages: [`\u001B[31mError\u001B[39m: ${long}`],
          },
        ],
      },
      { name: "/root/y.test.ts", status: "failed", message: "Cannot find module", assertionResults: [] },
      { name: "/root/z.test.ts", status: "passed", assertionResults: [] },
    ],
  };
  const [first, ...others] = failuresOf(report, "/root");
  expect(first?.what).toBe("a part fails (packages/x.test.ts)");
  expect(first?.why.split("\n")).toEqual(["Error: line 0", ...numbered("line", 1, 11), "…"]);
  expect(others).toEqual([{ what: "y.test.ts", why: "Cannot find module" }]);
});

test("of a suite that is no test run: the end of its output", () => {
  const { what, why } = failureOfOutput("lint", `${numbered("warning", 1, 50).join("\n")}\n`);
  expect(what).toBe("lint");
  expect(why.split("\n")).toEqual(["…", ...numbered("warning", 21, 50)]);
});

test("a run that fails says so in its result: a command, a test, a file that cannot be loaded", async () => {
  const directory = mkdtempSync(join(tmpdir(), "sandboxer-failing-"));
  // Its output would look like failures of this run.
  const printed = vi.spyOn(process.stdout, "write").mockReturnValue(true);
  onTestFinished(() => {
    printed.mockRestore();
    rmSync(directory, { recursive: true });
  });
  writeFileSync(join(directory, "command.mjs"), "console.log('what it said'); process.exit(3)");
  const command = { name: "lint", argv: [process.execPath, join(directory, "command.mjs")], timeoutMs: 30_000 };
  expect(await runSuite({ ...command, vitest: false }, "at the end")).toMatchObject({
    failed: 1,
    failures: [{ what: "lint", why: "what it said" }],
  });

  writeFileSync(join(directory, "broken.test.mjs"), "import './none.mjs';");
  writeFileSync(
    join(directory, "one.test.mjs"),
    "import { test } from 'vitest'; test('one', () => { throw new Error('why it fails'); });",
  );
  const { argv, ...suite } = vitestSuite("failing", 60_000);
  const here = [
    ...argv.filter((word) => word !== "--project" && word !== "failing"),
    "--root",
    directory,
    "--no-isolate",
    "--maxWorkers=1",
  ];
  writeFileSync(join(directory, "vitest.config.mjs"), "export default { test: { include: ['*.test.mjs'] } };");
  const result = await runSuite({ ...suite, argv: here }, "at the end");
  const [broken, one] = (result.failures ?? []).toSorted((left, right) => left.what.length - right.what.length);
  expect(result.failed).toBe(1);
  expect(one?.what).toMatch(/^one \(.*one\.test\.mjs\)$/u);
  expect(one?.why).toContain("why it fails");
  expect(broken?.what).toMatch(/broken\.test\.mjs$/u);
  expect(broken?.why).toContain("none.mjs");
});

function numbered(word: string, from: number, to: number): string[] {
  return Array.from({ length: to - from + 1 }, (_, index) => `${word} ${from + index}`);
}
