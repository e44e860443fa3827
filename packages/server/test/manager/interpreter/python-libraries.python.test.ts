import { dirname } from "node:path";
import { describe, expect, test } from "vitest";
import { notebookEnvironment, whyNoPython } from "../../../../../test/kit/services/python-environment.ts";
import { DriverProcess } from "./driver-process.ts";

const missing = whyNoPython(notebookEnvironment);
if (missing !== undefined) console.warn(`Tests of cells with matplotlib, pandas and IPython are skipped: ${missing}`);

const PNG = Buffer.from("\x89PNG", "latin1");

function start(): Promise<DriverProcess> {
  return DriverProcess.start("python", {
    env: { PATH: `${dirname(notebookEnvironment.python)}:${process.env["PATH"]}` },
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
