import type { Observation } from "./backend-table/observation.ts";
import type { Failure } from "./failures.ts";
import type { SkippedTest } from "./vitest-report.ts";

/** A part of `npm test`. */
export interface Suite {
  /** As `npm test -- NAME` selects it. */
  readonly name: string;
  /** The engine, if there is a choice: that of the gVisor suites. */
  readonly on?: string;
  readonly argv: readonly string[];
  readonly env?: Readonly<Record<string, string>>;
  readonly timeoutMs: number;
  /** The parent of the folder for its temporary files; by default the system's. */
  readonly temporaryIn?: string;
  /** Whether it is a vitest run, which counts its tests; another command counts as one. */
  readonly vitest: boolean;
}

export interface SuiteResult {
  readonly title: string;
  readonly passed: number;
  readonly failed: number;
  readonly elapsedMs: number;
  /** Processor time of the suite and its children; without sandboxes and daemons that outlive their parents. */
  readonly processorMs?: number | undefined;
  /** The failures, which are printed at the end. */
  readonly failures?: readonly Failure[];
  /** Tests that a suite skipped because this machine or this engine does not support them. */
  readonly skippedTests: readonly SkippedTest[];
  /** The results of its tests of the backends' contract. */
  readonly observations?: readonly Observation[];
  /** Why the whole suite was left out. */
  readonly skippedBecause?: string;
}

const NODE_MODULES = new URL("../../node_modules/", import.meta.url).pathname;

/**
 * For the compiler and the linter, which are written in Go: several checkers repeat much of the work, and free their
 * memory more often than necessary. These settings halve the processor time; the duration stays the same.
 */
const ONE_CHECKER = ["--checkers", "1"];
const IN_GO = { GOMAXPROCS: "1", GOGC: "200" };

/** Static checks: they need only the sources and their history. */
export const STATIC_SUITES: readonly Suite[] = [
  typecheck("typecheck"),
  typecheck("typecheck-console", "--project", "packages/console"),
  typecheck("typecheck-docs", "--project", "docs/.vitepress"),
  { ...command("lint", "oxlint/bin/oxlint", "--type-aware", "--deny-warnings"), env: IN_GO },
  command("format", "oxfmt/bin/oxfmt", "--check"),
  command("unused", "knip/bin/knip.js"),
  { ...script("commit-subjects"), timeoutMs: 60_000 },
];

/** Random schedules of faults against the core that decides on ownership. */
export function simulation(schedules: number): Suite {
  return { ...script("sim", "--schedules", String(schedules)), name: "simulation" };
}

export function vitestSuite(
  project: string,
  timeoutMs: number,
  on?: string,
  env?: Readonly<Record<string, string>>,
): Suite {
  const argv = [process.execPath, `${NODE_MODULES}vitest/vitest.mjs`, "run", "--project", project];
  return {
    name: project,
    ...(on === undefined ? {} : { on }),
    argv,
    ...(env === undefined ? {} : { env }),
    timeoutMs,
    vitest: true,
  };
}

export function titleOf(suite: Pick<Suite, "name" | "on">): string {
  return suite.on === undefined ? suite.name : `${suite.name} on ${suite.on}`;
}

function typecheck(name: string, ...rest: readonly string[]): Suite {
  return { ...command(name, "typescript/bin/tsc", "--noEmit", ...ONE_CHECKER, ...rest), env: IN_GO };
}

function script(name: string, ...rest: readonly string[]): Suite {
  const path = new URL(`../${name}.ts`, import.meta.url).pathname;
  return { name, argv: [process.execPath, path, ...rest], timeoutMs: 600_000, vitest: false };
}

function command(name: string, program: string, ...rest: string[]): Suite {
  return { name, argv: [process.execPath, `${NODE_MODULES}${program}`, ...rest], timeoutMs: 600_000, vitest: false };
}
