import { expect, test } from "vitest";
import { mergePage } from "../../bench/report/page.ts";

const PAGE = "# Benchmarks\n\nEngine rows.\n\n## Where the time goes\n\nPhases.\n";

test("a page from before there were sections keeps everything as the first one", () => {
  const merged = mergePage(PAGE, { handoff: "## Handoff\n\nRows.\n" });
  expect(merged).toBe(
    "# Benchmarks\n\n<!-- measured: engine -->\nEngine rows.\n\n## Where the time goes\n\nPhases.\n\n<!-- measured: handoff -->\n## Handoff\n\nRows.\n",
  );
});

test("what was measured takes the place of its section, and of no other", () => {
  const all = mergePage(mergePage(PAGE, { requests: "## Requests\n" }), { handoff: "## Handoff\n" });
  expect(mergePage(all, {})).toBe(all);
  const again = mergePage(all, { handoff: "## Handoff, again\n" });
  expect(again).toBe(all.replace("## Handoff\n", "## Handoff, again\n"));
  expect(mergePage(all, { engine: "Other rows." })).toBe(
    all.replace("Engine rows.\n\n## Where the time goes\n\nPhases.", "Other rows."),
  );
});

test("an empty page gets a title and what was measured", () => {
  expect(mergePage("", { requests: "## Requests" })).toBe("# Benchmarks\n\n<!-- measured: requests -->\n## Requests\n");
});
