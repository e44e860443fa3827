import { spawn } from "node:child_process";
import { closeSync, existsSync, mkdtempSync, openSync, readFileSync, rmSync, writeSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { observationsOf } from "./backend-table/observation.ts";
import { failureOfOutput, failuresOf, type Failure } from "./failures.ts";
import { titleOf, type Suite, type SuiteResult } from "./suite.ts";
import { readVitestReport, skippedTestsOf, type VitestReport } from "./vitest-report.ts";

const ROOT = new URL("../..", import.meta.url).pathname;
/** The cache of compiled TypeScript: the suites start hundreds of processes, each of which would do it again. */
const COMPILED = join(ROOT, "node_modules/.cache/sandboxer/compiled");

/** Records the processor time of a command and its children; its exit code stays. */
const TIMED = ["sh", "-c", '"$@"; code=$?; times > "$0"; exit $code'];

/**
 * Runs a suite and counts. Its output is passed through; if it runs beside others, it is shown at the end. A suite that
 * hangs is killed and counts as failed.
 */
export async function runSuite(
  suite: Suite,
  output: "as it comes" | "at the end" = "as it comes",
): Promise<SuiteResult> {
  const title = titleOf(suite);
  const heading = `\n== ${title}\n`;
  process.stdout.write(output === "as it comes" ? heading : `${title}: started\n`);
  const directory = mkdtempSync(join(suite.temporaryIn ?? tmpdir(), "sandboxer-test-"));
  const reportPath = join(directory, "report.json");
  const outputPath = join(directory, "output");
  const timesPath = join(directory, "times");
  const outputFile = output === "at the end" ? openSync(outputPath, "w") : undefined;
  const startMs = performance.now();
  try {
    const argv = suite.vitest
      ? [...suite.argv, "--reporter=default", "--reporter=json", `--outputFile.json=${reportPath}`]
      : suite.argv;
    const exitCode = await run([...TIMED, timesPath, ...argv], suite, directory, outputFile ?? "inherit");
    const said = outputFile === undefined ? "(see above)" : readFileSync(outputPath, "utf8");
    if (outputFile !== undefined) process.stdout.write(heading + said);
    const counts = suite.vitest
      ? readReport(reportPath)
      : { passed: exitCode === 0 ? 1 : 0, failed: 0, skippedTests: [], failures: [] };
    // A crash, an unhandled rejection or a file that cannot be loaded is a failure that no test reports.
    const failed = exitCode !== 0 ? Math.max(1, counts.failed) : counts.failed;
    const failures = failed > 0 && counts.failures.length === 0 ? [failureOfOutput(title, said)] : counts.failures;
    const elapsedMs = performance.now() - startMs;
    return { title, ...counts, failed, failures, elapsedMs, processorMs: readTimes(timesPath) };
  } finally {
    if (outputFile !== undefined) closeSync(outputFile);
    rmSync(directory, { recursive: true, force: true, maxRetries: 5 });
  }
}

function run(argv: readonly string[], suite: Suite, directory: string, output: "inherit" | number): Promise<number> {
  const [program = "", ...rest] = argv;
  const child = spawn(program, rest, {
    cwd: ROOT,
    stdio: ["inherit", output, output],
    detached: true,
    env: {
      NODE_COMPILE_CACHE: COMPILED,
      ...process.env,
      ...(suite.temporaryIn === undefined ? {} : { TMPDIR: directory }),
      ...suite.env,
    },
  });
  // A group of its own, so that nothing of a suite outlives it: vitest's workers would.
  const killGroup = (): void => {
    try {
      if (child.pid !== undefined) process.kill(-child.pid, "SIGKILL");
    } catch {
      // The group has already ended.
    }
  };
  const interrupted = (): never => process.exit(130);
  process.once("exit", killGroup).once("SIGINT", interrupted).once("SIGTERM", interrupted);
  const timer = setTimeout(() => {
    const line = `${titleOf(suite)}: not done within ${suite.timeoutMs / 1000} s; killed\n`;
    process.stderr.write(line);
    if (output !== "inherit") writeSync(output, line);
    killGroup();
  }, suite.timeoutMs);
  return new Promise<number>((resolve, reject) => {
    child.once("error", reject);
    child.once("exit", (code) => resolve(code ?? 1));
  }).finally(() => {
    clearTimeout(timer);
    killGroup();
    process.off("exit", killGroup).off("SIGINT", interrupted).off("SIGTERM", interrupted);
  });
}

/** The second line of a shell's `times` is for the commands that it ran: `1m2.345s 0m0.678s`. */
function readTimes(path: string): number | undefined {
  if (!existsSync(path)) return undefined;
  const [, ofCommands = ""] = readFileSync(path, "utf8").split("\n");
  const parts = [...ofCommands.matchAll(/(\d+)m([\d.]+)s/g)];
  return parts.reduce((sum, [, minutes, seconds]) => sum + Number(minutes) * 60_000 + Number(seconds) * 1000, 0);
}

function readReport(
  path: string,
): Pick<SuiteResult, "passed" | "failed" | "skippedTests" | "observations"> & { failures: readonly Failure[] } {
  let report: VitestReport;
  try {
    report = readVitestReport(path);
  } catch {
    return { passed: 0, failed: 0, skippedTests: [], failures: [] };
  }
  return {
    passed: report.numPassedTests,
    failed: report.numFailedTests,
    skippedTests: skippedTestsOf(report),
    failures: failuresOf(report, ROOT),
    observations: observationsOf(report),
  };
}
