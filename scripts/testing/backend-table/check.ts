import { mkdirSync, readFileSync, writeFileSync } from "node:fs";
import { dirname } from "node:path";
import type { SuiteResult } from "../suite.ts";
import { columnsNotSeen, differencesFrom } from "./compare.ts";
import type { Observation } from "./observation.ts";

export const PAGE = new URL("../../../docs/reference/backends.md", import.meta.url).pathname;
/** The results of the last `npm test`, for `npm run backend-table`. */
export const LAST_SEEN = new URL("../../../node_modules/.cache/sandboxer/backend-contract.json", import.meta.url)
  .pathname;

/** A part of `npm test`: whether the page matches the results of the suites. Undefined if no backend was tested. */
export function checkBackendTable(results: readonly SuiteResult[]): SuiteResult | undefined {
  const startMs = performance.now();
  const observations = results.flatMap((result) => result.observations ?? []);
  if (observations.length === 0) return undefined;
  mkdirSync(dirname(LAST_SEEN), { recursive: true });
  writeFileSync(LAST_SEEN, JSON.stringify(observations));
  const differences = reportDifferences(observations);
  return {
    title: "backend-table",
    passed: differences.length === 0 ? 1 : 0,
    failed: differences.length === 0 ? 0 : 1,
    elapsedMs: performance.now() - startMs,
    skippedTests: [],
    ...(differences.length === 0 ? {} : { failures: [{ what: PAGE, why: differences.join("\n") }] }),
  };
}

/** Prints the differences between the page and the results, and returns them. */
export function reportDifferences(observations: readonly Observation[]): readonly string[] {
  const page = readFileSync(PAGE, "utf8");
  const differences = differencesFrom(page, observations);
  const backends = [...new Set(observations.map(({ backend }) => backend))].join(", ");
  const unseen = columnsNotSeen(page, observations);
  const left = unseen.length === 0 ? "" : ` Not checked: ${unseen.join(", ")}.`;
  const outcome =
    differences.length === 0
      ? `it matches the results of ${backends}.${left}`
      : `it differs from the results:\n${differences.map((line) => `  ${line}\n`).join("")}` +
        "If the results are as intended, update the table with: npm run backend-table -- --write";
  process.stdout.write(`\n== The table of docs/reference/backends.md: ${outcome}\n`);
  return differences;
}
