import { expect, test } from "vitest";
import { renderCurvePlot } from "../../bench/report/curve-plot.ts";
import { renderPage } from "../../bench/report/page.ts";
import { renderRatioPlot } from "../../bench/report/ratio-plot.ts";
import type { GroupResult, Results, RunFacts } from "../../bench/report/results.ts";
import { joinFindings, type Contest, type Curve, type Findings } from "../../bench/result.ts";
import { quantile, ratiosOf, summarize } from "../../bench/statistics.ts";

function run(date: string): RunFacts {
  const machine = {
    cpu: "Some CPU",
    cores: 2,
    memoryGiB: 24,
    kernel: "6.1",
    fileSystem: "ext4",
    node: "v26",
    commit: "abc",
    loadAverage: [0.1, 0.2],
  };
  const engine = { version: "20240729.0", platform: "systrap" };
  return { date, command: "npm run bench", quick: false, machine, engine, versions: { Docker: "26.1" } };
}

function group(findings: Partial<Findings>, date = "2026-01-02T03:04:05Z"): GroupResult {
  return { ...joinFindings([findings]), run: run(date), seconds: 1 };
}

function contest(ours: number[], other: number[], more: Partial<Contest> = {}): Contest {
  const sides = [
    { name: "sandboxer", what: "by the server", summary: summarize(ours) },
    { name: "Docker (runc)", what: "by the engine", summary: summarize(other) },
  ];
  return { id: "peer-run", title: "From nothing", unit: "ms", sides, ...more };
}

const page = (groups: Results["groups"]): string => renderPage({ format: 1, groups });

test("a ratio is that of each round, not of the medians", () => {
  const ratios = ratiosOf(summarize([10, 40, 30]), summarize([10, 10, 10]));
  expect([ratios.minimum, ratios.median, ratios.maximum]).toEqual([1, 3, 4]);
  expect(ratiosOf(summarize([10, 40]), summarize([20, 10, 5])).values).toEqual([2.5]);
});

test("quantiles lie between the values", () => {
  expect(quantile([1, 2, 3, 4], 0.5)).toBe(2.5);
  expect(quantile([7], 0.99)).toBe(7);
});

test("the page names the losses of the product and their reasons", () => {
  const losing = page({ peers: group({ contests: [contest([300, 330], [100, 100])] }) });
  expect(losing).toContain("## Where sandboxer loses");
  expect(losing).toMatch(/\| From nothing \| Docker \(runc\) \| 3\.15× \(3\.00–3\.30\) \| runc starts a process/);
  expect(page({ peers: group({ contests: [contest([100], [300])] }) })).not.toContain("loses");
});

test("more is better for rates", () => {
  const slower = contest([100], [300], { id: "output", unit: "MB/s" });
  expect(page({ peers: group({ contests: [slower] }) })).toContain("## Where sandboxer loses");
  const faster = contest([300], [100], { id: "output", unit: "MB/s" });
  expect(page({ peers: group({ contests: [faster] }) })).not.toContain("loses");
});

test("aims are marked as met or not met", () => {
  const aim = { bound: "at most", ratio: 0.5 } as const;
  const met = contest([40], [100], { title: "Quick", aim });
  const missed = contest([60], [100], { title: "Slow", aim });
  const text = page({ peers: group({ contests: [met, missed] }) });
  expect(text).toContain("Met: Quick.");
  expect(text).toMatch(/Not met:\n\n.*\n.*\n\| Slow \| 0\.60× \| ≤ 0\.50× \| runc starts/);
});

test("groups keep the run that they were measured in", () => {
  const text = page({
    peers: group({ contests: [contest([1], [1])] }, "2026-01-02T03:04:05Z"),
    exec: group({ contests: [contest([1], [1])] }, "2026-02-03T04:05:06Z"),
  });
  expect(text).toContain("- 2026-02-03 04:05 UTC: `npm run bench`: exec");
  expect(text).toContain("- 2026-01-02 03:04 UTC: `npm run bench`: peers");
  expect(text).toContain("Docker 26.1");
});

test("a missing measurement is listed with its reason", () => {
  const skipped = [{ what: "podman: save", why: "CRIU does not fit\nthis kernel | at all" }];
  expect(page({ peers: group({ skipped }) })).toContain("| podman: save | CRIU does not fit this kernel \\| at all |");
});

test("a curve has a table, and a plot that matches its values", () => {
  const curve: Curve = {
    id: "size",
    title: "Restore <by> size",
    x: "MB",
    y: "ms",
    notes: ["Stopped early."],
    series: [
      { name: "ours", points: [1, 10, 100].map((x) => ({ x, summary: summarize([x * 10]) })) },
      { name: "raw", points: [{ x: 10, summary: summarize([50, 70]) }] },
    ],
  };
  const text = page({ stored: group({ curves: [curve] }) });
  expect(text).toContain("![Restore <by> size](curve-size.svg)");
  expect(text).toContain("| 10 | 100 ms | 60.0 ms (50.0–70.0) |");
  expect(text).toContain("Stopped early.");
  const plot = renderCurvePlot(curve);
  expect(plot).toContain("Restore &lt;by> size");
  const [, line = ""] = /<polyline points="([^"]+)"/.exec(plot) ?? [];
  const places = line.split(" ").map((pair) => pair.split(",").map(Number) as [number, number]);
  const steps = places.slice(1).map(([x, y], at) => [x - (places[at]?.[0] ?? 0), (places[at]?.[1] ?? 0) - y] as const);
  expect(steps[0]?.[0]).toBeCloseTo(steps[1]?.[0] ?? 0, 0);
  expect(steps[0]?.[1]).toBeCloseTo(steps[1]?.[1] ?? 0, 0);
  expect(Math.min(...steps.flat())).toBeGreaterThan(20);
});

test("a plot of ratios has a bar for each ratio, on the right side of 1", () => {
  const plot = renderRatioPlot("Peers", [contest([100], [200]), contest([400], [200])]);
  const bars = [...plot.matchAll(/<rect class="\w+" x="([\d.]+)"[^>]* width="([\d.]+)"/g)].map(([, x, width]) => [
    Number(x),
    Number(width),
  ]);
  expect(bars).toHaveLength(2);
  expect([...plot.matchAll(/<rect class="(\w+)"/g)].map(([, kind]) => kind)).toEqual(["better", "worse"]);
  const [left = [0, 0], right = [0, 0]] = bars;
  expect((left[0] ?? 0) + (left[1] ?? 0)).toBeCloseTo(right[0] ?? 0, 0);
});
