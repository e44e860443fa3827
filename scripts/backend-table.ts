/**
 * `npm run backend-table`: compares the table of `docs/reference/backends.md` with the results of the backends'
 * contract in the last `npm test`, or in the given JSON reports of vitest. `--write` writes it; untested columns stay.
 */
import { existsSync, readFileSync, writeFileSync } from "node:fs";
import { parseArgs } from "node:util";
import { LAST_SEEN, PAGE, reportDifferences } from "./testing/backend-table/check.ts";
import { withObservations } from "./testing/backend-table/compare.ts";
import { observationsOf, type Observation } from "./testing/backend-table/observation.ts";
import { readVitestReport } from "./testing/vitest-report.ts";

const { values, positionals } = parseArgs({ options: { write: { type: "boolean" } }, allowPositionals: true });
const observations = positionals.length === 0 ? lastSeen() : positionals.map(readVitestReport).flatMap(observationsOf);
if (values.write === true) writeFileSync(PAGE, withObservations(readFileSync(PAGE, "utf8"), observations));
process.exitCode = reportDifferences(observations).length === 0 ? 0 : 1;

function lastSeen(): Observation[] {
  if (existsSync(LAST_SEEN)) return JSON.parse(readFileSync(LAST_SEEN, "utf8")) as Observation[];
  throw new Error("Run npm test first, or name JSON reports of vitest.");
}
