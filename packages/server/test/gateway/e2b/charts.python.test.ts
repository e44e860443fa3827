import { execFile } from "node:child_process";
import { dirname, join } from "node:path";
import { promisify } from "node:util";
import { Sandbox } from "@e2b/code-interpreter";
import { describe, expect, onTestFinished, test, vi } from "vitest";
import { withHostInterpreters } from "../../../../../test/kit/server/host-interpreters.ts";
import {
  notebookEnvironment,
  pythonEnvironment,
  whyNoPython,
} from "../../../../../test/kit/services/python-environment.ts";
import { startForE2b } from "./sdk.ts";

const missing = whyNoPython() ?? whyNoPython(notebookEnvironment);
if (missing !== undefined) console.warn(`Tests of charts for E2B's code-interpreter packages are skipped: ${missing}`);

/** One figure for each class of E2B's Python package, and a data frame. */
const FIGURES = `
import matplotlib.pyplot as plt, pandas
plt.plot([0, 1], [2, 3], label="a line"); plt.xlabel("Time (s)"); plt.show()
plt.scatter([0, 1], [2, 3]); plt.show()
plt.bar(["a", "b"], [1, 2]); plt.show()
plt.pie([1, 3], labels=["a", "b"]); plt.show()
plt.boxplot([[1, 2, 3, 4, 5]]); plt.show()
_, axes = plt.subplots(1, 2); axes[0].plot([1, 2]); axes[1].bar(["a"], [1]); plt.show()
pandas.DataFrame({"a": [1, 2], "b": ["x", None]})`;
/** The list of fonts, which takes seconds to make. */
const ENVS = { MPLCONFIGDIR: join(notebookEnvironment.folder, "matplotlib") };
const TYPES = ["line", "scatter", "bar", "pie", "box_and_whisker", "superchart"];
const FRAME = { a: [1, 2], b: ["x", null] };

/** Prints what E2B's package has read of each result. */
const PROGRAM = `
import asyncio, inspect, json, sys
import e2b_code_interpreter as package
async def main():
    done = lambda value: value if inspect.isawaitable(value) else asyncio.sleep(0, value)
    kind = package.AsyncSandbox if sys.argv[1] == "async" else package.Sandbox
    sandbox = await done(kind.create(envs=json.loads(sys.argv[3])))
    run = await done(sandbox.run_code(sys.argv[2]))
    print(json.dumps([
        [type(result.chart).__name__, bool(result.png), result.data] for result in run.results
    ]))
    line = run.results[0].chart
    print(json.dumps([line.x_unit, line.x_scale.value, line.elements[0].label, line.elements[0].points]))
asyncio.run(main())`;

async function startWithLibraries(): Promise<void> {
  vi.stubEnv("PATH", `${dirname(notebookEnvironment.python)}:${process.env["PATH"]}`);
  onTestFinished(() => void vi.unstubAllEnvs());
  await startForE2b({ wrapBackend: withHostInterpreters });
}

describe.skipIf(missing !== undefined)("figures and data frames of a cell, in E2B's code-interpreter packages", () => {
  test("npm", async () => {
    await startWithLibraries();
    const { results, error } = await (await Sandbox.create({ envs: ENVS })).runCode(FIGURES);
    expect(error).toBe(undefined);
    expect(results.flatMap(({ chart, png }) => (png === undefined ? [] : [chart?.type]))).toEqual(TYPES);
    expect(results.at(-1)).toMatchObject({ isMainResult: true, data: FRAME });
    expect(results.at(-1)?.html).toContain("<table");
  });

  test.each(["sync", "async"])("PyPI, %s", async (flavour) => {
    await startWithLibraries();
    const argv = ["-c", PROGRAM, flavour, FIGURES, JSON.stringify(ENVS)];
    const { stdout } = await promisify(execFile)(pythonEnvironment.python, argv, { env: process.env });
    const [results = "", line = ""] = stdout.split("\n");
    const classes = ["LineChart", "ScatterChart", "BarChart", "PieChart", "BoxAndWhiskerChart", "SuperChart"];
    expect(JSON.parse(results)).toEqual([...classes.map((name) => [name, true, null]), ["NoneType", false, FRAME]]);
    const points = [
      [0, 2],
      [1, 3],
    ];
    expect(JSON.parse(line)).toEqual(["s", "linear", "a line", points]);
  });
});
