import { expect, test } from "vitest";
import { columnsNotSeen, differencesFrom, withObservations } from "../testing/backend-table/compare.ts";
import { observationsOf } from "../testing/backend-table/observation.ts";
import { skippedTestsOf, type ReportedTest, type VitestReport } from "../testing/vitest-report.ts";

const EMPTY = `# Backends

<!-- backend table: made by \`npm run backend-table -- --write\` of what the contract suite saw -->
<!-- end of the backend table -->

## Docker
`;

type Outcome = "passed" | "failed" | "skipped" | { readonly reason: string; readonly instead?: string };

/** A report as vitest writes it: of one backend, each part of the contract with its tests. */
function report(backend: string, parts: Readonly<Record<string, readonly Outcome[]>>, around = "suite"): VitestReport {
  const assertionResults = Object.entries(parts).flatMap(([subject, outcomes]) =>
    outcomes.map((outcome, index): ReportedTest => {
      const ancestorTitles = [around, `contract of the ${backend} backend`, `on ${subject}`];
      const fullName = [...ancestorTitles, `test ${index}`].join(" ");
      if (typeof outcome === "string") return { ancestorTitles, fullName, status: outcome, meta: {} };
      return { ancestorTitles, fullName, status: "skipped", meta: { lacking: outcome } };
    }),
  );
  const other = { ancestorTitles: ["on its own"], fullName: "on its own, no contract", status: "passed", meta: {} };
  return {
    numPassedTests: 0,
    numFailedTests: 0,
    testResults: [{ name: "contract.test.ts", status: "passed", assertionResults: [...assertionResults, other] }],
  };
}

const NONE = { reason: "It has none." };
const STORE = { reason: "The server does it.", instead: "by the server" };
const stone = report("stone", { commands: ["passed", "passed"], ports: [NONE, NONE], resuming: [STORE] });
const paper = report("paper", { commands: ["passed"], ports: ["passed"], resuming: ["passed"] });
const PAGE = withObservations(EMPTY, [stone, paper].flatMap(observationsOf));

test("rows are the parts of the contract, columns the backends, and missing features have their reason below", () => {
  const table = `| | paper | stone |
|---|---|---|
| commands | yes | yes |
| ports | yes | no (1) |
| resuming | yes | by the server (2) |

1. It has none.
2. The server does it.`;
  expect(PAGE).toBe(EMPTY.replace("\n<!-- end", `\n${table}\n<!-- end`));
});

test("a page that matches the results has no difference, whichever suites ran", () => {
  for (const reports of [[stone, paper], [paper, stone], [stone], [paper], []]) {
    expect(differencesFrom(PAGE, reports.flatMap(observationsOf))).toEqual([]);
  }
});

test("untested backends are named", () => {
  expect(columnsNotSeen(PAGE, observationsOf(paper))).toEqual(["stone"]);
  const skipped = report("stone", { commands: ["skipped"] });
  expect(columnsNotSeen(PAGE, [paper, skipped].flatMap(observationsOf))).toEqual(["stone"]);
  expect(columnsNotSeen(PAGE, [paper, stone].flatMap(observationsOf))).toEqual([]);
});

test("a difference names its row, its column and both values", () => {
  const seen = report("stone", { commands: ["passed"], ports: ["passed"], resuming: [{ ...STORE, reason: "Other." }] });
  expect(differencesFrom(PAGE, observationsOf(seen))).toEqual([
    'row "ports", stone: the page has "no; It has none.", the suite saw "yes"',
    'row "resuming", stone: the page has "by the server; The server does it.", the suite saw "by the server; Other."',
  ]);
});

test("writing changes the tested columns, and leaves the others and the rest of the page", () => {
  const again = report("paper", { commands: ["passed"], ports: [NONE], resuming: ["passed"] });
  const written = withObservations(PAGE, observationsOf(again));
  expect(written).toBe(PAGE.replace("| ports | yes |", "| ports | no (1) |"));
  expect(differencesFrom(written, [again, stone].flatMap(observationsOf))).toEqual([]);
});

test("new or missing parts, and new backends, are differences", () => {
  const parts = { commands: ["passed"], ports: ["passed"], pausing: ["passed"] } as const;
  const seen = [report("paper", parts), report("scissors", parts)].flatMap(observationsOf);
  expect(differencesFrom(PAGE, seen)).toEqual([
    'row "commands", scissors: the page has nothing, the suite saw "yes"',
    'row "ports", scissors: the page has nothing, the suite saw "yes"',
    'row "pausing", paper: the page has nothing, the suite saw "yes"',
    'row "pausing", scissors: the page has nothing, the suite saw "yes"',
    'row "resuming": the contract has no such part',
  ]);
  const written = withObservations(PAGE, seen);
  expect(written).toContain("| | paper | stone | scissors |");
  expect(written).toContain("| pausing | yes | ? | yes |");
  expect(written).not.toContain("resuming");
  expect(differencesFrom(written, seen)).toEqual([]);
});

test("tests that failed, or were skipped because of the machine, do not count for the backend", () => {
  const failed = report("stone", { commands: ["passed", "failed"], ports: ["failed"], resuming: ["skipped"] });
  expect(differencesFrom(PAGE, observationsOf(failed))).toEqual([]);
  expect(withObservations(PAGE, observationsOf(failed))).toBe(PAGE);
});

test("two engines of one backend share a column, which shows where they differ", () => {
  const older = report("stone", { commands: ["passed"], ports: ["passed"], resuming: [STORE] }, "the older engine");
  const written = withObservations(PAGE, [older, stone].flatMap(observationsOf));
  expect(written).toBe(PAGE.replace("no (1)", "partly (1)"));
});

test("a page without a place for the table, or with a row that was moved, is a difference", () => {
  const seen = observationsOf(stone);
  expect(differencesFrom("# Backends\n", seen)).toEqual([expect.stringContaining("no place for the table")]);
  const [commands = "", ports = ""] = PAGE.split("\n").slice(5, 7);
  const moved = PAGE.replace(`${commands}\n${ports}`, `${ports}\n${commands}`);
  expect(moved).not.toBe(PAGE);
  expect(differencesFrom(moved, seen)).toEqual(["the order of the rows, or the format of the table"]);
});

test("the summary has the reason of each missing feature, and the name of every other skipped test", () => {
  const seen = report("stone", { ports: [NONE], files: ["skipped"] }, "Stone:");
  expect(skippedTestsOf(seen)).toEqual([
    { name: "Stone: contract of the stone backend on ports: It has none.", isGap: true },
    { name: "Stone: contract of the stone backend on files test 0", isGap: false },
  ]);
});
