import { dirname, join } from "node:path";
import { describe, expect, test } from "vitest";
import { notebookEnvironment, whyNoPython } from "../../../../../test/kit/services/python-environment.ts";
import { DriverProcess } from "./driver-process.ts";

const missing = whyNoPython(notebookEnvironment);
if (missing !== undefined) console.warn(`Tests of cells with matplotlib, pandas and IPython are skipped: ${missing}`);

const PNG = Buffer.from("\x89PNG", "latin1");

function start(): Promise<DriverProcess> {
  return DriverProcess.start("python", {
    env: {
      PATH: `${dirname(notebookEnvironment.python)}:${process.env["PATH"]}`,
      // The list of fonts takes seconds to make.
      MPLCONFIGDIR: join(notebookEnvironment.folder, "matplotlib"),
    },
  });
}

describe.skipIf(missing !== undefined)("cells with the libraries of notebooks", () => {
  test("figures are pictures with their data", async () => {
    const driver = await start();
    const plotted = await driver.run(`import matplotlib.pyplot as plt
plt.title("growth"); plt.xlabel("day"); plt.ylabel("size")
plt.plot([0, 1], [2.0, float("nan")], label="a line")
plt.show()`);
    const [figure, ...more] = plotted.results;
    expect([plotted.error, more]).toEqual([undefined, []]);
    expect(Buffer.from(figure?.png ?? "", "base64").subarray(0, 4)).toEqual(PNG);
    expect(figure?.chart).toMatchObject({
      type: "line",
      title: "growth",
      x_label: "day",
      y_label: "size",
      elements: [
        {
          label: "a line",
          points: [
            [0, 2],
            [1, null],
          ],
        },
      ],
    });
    // Shown without plt.show(), and only once.
    expect((await driver.run("_ = plt.bar(['a', 'b'], [1, 2])")).results).toMatchObject([
      {
        chart: {
          type: "bar",
          elements: [
            { label: "a", value: 1 },
            { label: "b", value: 2 },
          ],
        },
      },
    ]);
    expect((await driver.run("1")).results).toEqual([{ text: "1" }]);
  });

  test("every kind of plot has its data", async () => {
    const driver = await start();
    const chart = async (code: string): Promise<unknown> => {
      const { results, error } = await driver.run(`import matplotlib.pyplot as plt\n${code}`);
      expect(error).toBe(undefined);
      return results.find(({ png }) => png !== undefined)?.chart;
    };
    expect(await chart("_ = plt.barh(['a', 'b'], [1, 2]); plt.xlabel('Size [GB]')")).toMatchObject({
      type: "bar",
      x_unit: "GB",
      y_unit: null,
      elements: [
        { label: "a", value: 1, group: "Group 0" },
        { label: "b", value: 2, group: "Group 0" },
      ],
    });
    expect(await chart("_ = plt.boxplot([[1, 2, 3, 4, 100]], tick_labels=['runs'])")).toMatchObject({
      type: "box_and_whisker",
      elements: [{ label: "runs", min: 1, first_quartile: 2, median: 3, third_quartile: 4, max: 4, outliers: [100] }],
    });
    const dated = "import datetime\nplt.plot([datetime.date(2026, 1, day) for day in (1, 2)], [3, 4])\nplt.show()";
    expect(await chart(dated)).toMatchObject({
      type: "line",
      x_scale: "datetime",
      y_scale: "linear",
      x_ticks: expect.arrayContaining(["2026-01-01T00:00:00+00:00"]) as unknown,
      elements: [
        {
          label: "Line 0",
          points: [
            ["2026-01-01", 3],
            ["2026-01-02", 4],
          ],
        },
      ],
    });
    const numpy = "import numpy\nplt.scatter(numpy.array(['2026-01-01'], 'datetime64[ns]'), [1])\nplt.show()";
    expect(await chart(numpy)).toMatchObject({
      type: "scatter",
      x_scale: "datetime",
      elements: [{ label: "Points 0" }],
    });
    expect(await chart("_ = plt.pie([1, 3], labels=['a', 'b'])")).toMatchObject({
      type: "pie",
      elements: [
        { label: "a", angle: 90 },
        { label: "b", angle: 270 },
      ],
    });
    const two = "_, (left, right) = plt.subplots(1, 2)\nleft.plot(['x', 'y'], [1, 2])\n_ = right.bar(['a'], [1])";
    expect(await chart(two)).toMatchObject({
      type: "superchart",
      elements: [{ type: "line", x_scale: "categorical" }, { type: "bar" }],
    });
  });

  test("data frames are tables", async () => {
    const driver = await start();
    const framed = await driver.run(
      "import pandas\npandas.DataFrame({'a': range(2000), 'when': pandas.Timestamp('2026-01-02'), 'none': None})",
    );
    const [result] = framed.results;
    expect(result?.html).toContain("<table");
    expect(result?.table).toMatchObject({ columns: ["a", "when", "none"], row_count: 2000, column_count: 3 });
    expect(result?.table?.rows).toHaveLength(1000);
    expect(result?.table?.rows[1]).toEqual([1, "2026-01-02 00:00:00", null]);
  });

  test("IPython's displays are results", async () => {
    const driver = await start();
    const shown = await driver.run(`from IPython.display import display, HTML, Image, JSON, Markdown
display(HTML("<b>one</b>"), JSON({"two": 2}))
display(Image(data=b"\\x89PNG\\r\\n\\x1a\\n" + bytes(16), format="png"))
Markdown("**four**")`);
    expect(shown.results).toMatchObject([
      { html: "<b>one</b>" },
      { json: { two: 2 } },
      { png: expect.stringMatching(/^iVBORw0KGgo/) as string },
      { markdown: "**four**" },
    ]);
  });
});
