import { expect, test } from "vitest";
import { checkSkips } from "../testing/skips.ts";
import type { SuiteResult } from "../testing/suite.ts";

const ALLOWED = [{ test: /^a moon of cheese$/, because: "Nobody has one." }];

function suite(...skipped: readonly (string | { readonly gap: string })[]): SuiteResult {
  const skippedTests = skipped.map((each) =>
    typeof each === "string" ? { name: each, isGap: false } : { name: each.gap, isGap: true },
  );
  return { title: "unit", passed: 3, failed: 0, elapsedMs: 1, skippedTests };
}

test("neither a skip that is allowed by its full name nor a documented gap of a backend is a failure", () => {
  const gap = { gap: "contract of the stone backend on ports: It has none." };
  expect(checkSkips([suite("a moon of cheese", gap), suite()], ALLOWED)).toEqual({ result: undefined, unused: [] });
});

test("every skip that is not allowed is a failure, named once", () => {
  const { result } = checkSkips([suite("a moon of cheese on toast", "no nft", "no nft"), suite("no nft")], ALLOWED);
  expect(result).toMatchObject({ title: "skipped tests", passed: 0, failed: 2 });
  expect(result?.failures?.map(({ what }) => what)).toEqual(["unit: a moon of cheese on toast", "unit: no nft"]);
});

test("an allowed skip that did not happen is reported", () => {
  expect(checkSkips([suite()], ALLOWED).unused).toEqual([expect.stringContaining("a moon of cheese")]);
});
