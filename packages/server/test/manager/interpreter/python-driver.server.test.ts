import { spawnSync } from "node:child_process";
import { mkdir, writeFile } from "node:fs/promises";
import { join } from "node:path";
import { describe, expect, test } from "vitest";
import { temporaryFolder } from "../../../../../test/kit/temporary-folder.ts";
import { DriverProcess } from "./driver-process.ts";

const hasPython = spawnSync("python3", ["--version"]).status === 0;

/** Stand-ins for libraries that this machine need not have, with the interfaces that the driver uses. */
async function libraries(): Promise<string> {
  const folder = await temporaryFolder();
  const put = async (path: string, text: string): Promise<void> => {
    await mkdir(join(folder, path, ".."), { recursive: true });
    await writeFile(join(folder, path), text);
  };
  await put(
    "pandas/__init__.py",
    `
class DataFrame:
    def __init__(self, data): self.data = data; self.columns = list(data)
    def __len__(self): return len(next(iter(self.data.values())))
    def head(self, n): return DataFrame({name: values[:n] for name, values in self.data.items()})
    def itertuples(self, index, name): return iter(list(zip(*self.data.values())))
    def _repr_html_(self): return "<table></table>"
`,
  );
  await put("matplotlib/__init__.py", "");
  await put(
    "matplotlib/figure.py",
    `
class Line:
    def __init__(self, xs, ys): self.xs, self.ys = xs, ys
    def get_label(self): return "a line"
    def get_xdata(self): return self.xs
    def get_ydata(self): return self.ys
class Axis:
    def get_scale(self): return "linear"
    def get_ticklocs(self): return [0, 1]
    def get_ticklabels(self): return []
class Axes:
    def __init__(self): self.patches, self.containers, self.collections, self.lines, self.texts = [], [], [], [], []; self.xaxis = self.yaxis = Axis()
    def get_title(self): return "a title"
    def get_xlabel(self): return "x"
    def get_ylabel(self): return "y"
    def get_lines(self): return self.lines
class Figure:
    def __init__(self): self.axes = [Axes()]
    def savefig(self, into, format, bbox_inches): into.write(b"\\x89PNG of a figure")
`,
  );
  await put(
    "matplotlib/pyplot.py",
    `
from matplotlib.figure import Figure, Line
figures = {}
def figure(number=None):
    return figures.setdefault(number or 1, Figure())
def plot(xs, ys): figure().axes[0].lines.append(Line(xs, ys))
def get_fignums(): return list(figures)
def close(which): [figures.pop(n) for n, f in list(figures.items()) if f is which]
def show(): raise RuntimeError("no display")
`,
  );
  return folder;
}

describe.skipIf(!hasPython)("the Python driver", () => {
  test("objects show themselves in the formats that they have", async () => {
    const driver = await DriverProcess.start("python");
    const { results } = await driver.run(`
class Rich:
    def __repr__(self): return "rich"
    def _repr_html_(self): return "<b>rich</b>"
    def _repr_markdown_(self): return "**rich**"
    def _repr_svg_(self): return "<svg/>"
    def _repr_latex_(self): return "$x$"
    def _repr_json_(self): return {"a": 1}
    def _repr_png_(self): return b"picture"
    def _repr_mimebundle_(self, **_): return {"application/x-own": {"k": [1]}}
Rich()`);
    const png = Buffer.from("picture").toString("base64");
    const more = { latex: "$x$", json: { a: 1 }, png, extra: { "application/x-own": { k: [1] } } };
    const text = { text: "rich", html: "<b>rich</b>", markdown: "**rich**", svg: "<svg/>" };
    expect(results).toEqual([{ ...text, ...more }]);
    expect((await driver.run("class Bad:\n  def __repr__(self): raise ValueError('no')\nBad()")).error?.name).toBe(
      "ValueError",
    );
    expect((await driver.run("Rich")).results[0]?.html).toBe(undefined);
    expect((await driver.run("5;")).results).toEqual([]);
    const omitted = await driver.run("class Big:\n  def _repr_html_(self): return 'x' * 9_000_000\nBig()");
    expect(omitted.results[0]).toMatchObject({ omitted: ["html"] });
  });

  test("figures are pictures with their data, and data frames are tables", async () => {
    const driver = await DriverProcess.start("python", { env: { PYTHONPATH: await libraries() } });
    const plotted = await driver.run(
      "import matplotlib.pyplot as plt\nplt.plot([0, 1], [2.0, float('nan')])\nplt.show()",
    );
    expect([plotted.error, plotted.results]).toMatchObject([
      undefined,
      [{ png: Buffer.from("\x89PNG of a figure", "latin1").toString("base64") }],
    ]);
    expect(plotted.results[0]?.chart).toMatchObject({
      type: "line",
      title: "a title",
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
    expect((await driver.run("plt.plot([0], [1])")).results).toHaveLength(1);
    expect((await driver.run("1")).results).toEqual([{ text: "1" }]);
    const framed = await driver.run("import pandas\npandas.DataFrame({'a': list(range(2000)), 'b': ['x'] * 2000})");
    expect(framed.results[0]?.table).toMatchObject({ columns: ["a", "b"], row_count: 2000, column_count: 2 });
    expect(framed.results[0]?.table?.rows).toHaveLength(1000);
  });

  test("a cell may await, use shell lines, and import modules of its folder without replacing ours", async () => {
    const cwd = await temporaryFolder();
    await writeFile(join(cwd, "json.py"), "raise SystemError('imported')\n");
    await writeFile(join(cwd, "own.py"), "value = 7\n");
    const driver = await DriverProcess.start("python", { cwd });
    expect((await driver.run("import own\nown.value")).results).toEqual([{ text: "7" }]);
    expect((await driver.run("import asyncio\nawait asyncio.sleep(0)\nawait asyncio.sleep(0, 5)")).results).toEqual([
      { text: "5" },
    ]);
    expect(await driver.run("!echo from a shell\nprint('and python')")).toMatchObject({
      stdout: "from a shell\nand python\n",
    });
    expect((await driver.run("if True: print('a'\n")).error).toMatchObject({ name: "SyntaxError" });
  });

  test("an interrupt ends a cell, and only a cell", async () => {
    const driver = await DriverProcess.start("python");
    driver.interrupt();
    for (const code of [
      "while True: pass",
      "import time\ntime.sleep(1000)",
      "print('x', flush=True)\ninput = __import__('subprocess').run(['sleep', '1000'])",
    ]) {
      const ended = await driver.run(code, { onFrame: ({ f }) => f === "start" && driver.interrupt() });
      expect([ended.status, ended.error?.name]).toEqual(["interrupted", "KeyboardInterrupt"]);
      expect(ended.error?.traceback).not.toContain("<sandboxer>");
    }
    expect((await driver.run("1 + 1")).results).toEqual([{ text: "2" }]);
  });

  describe("a cell cannot confuse the server with", () => {
    const cases: Record<string, { code: string; stdout?: string; status?: string }> = {
      "a replaced print": { code: "import builtins\nbuiltins.print = None", status: "ok" },
      "closed streams": { code: "import sys, os\nsys.stdout.close()\nsys.stderr.close()", status: "ok" },
      "closed descriptors 0, 1 and 2 of its children": {
        code: "import subprocess\nsubprocess.run(['sh', '-c', 'exec 0<&- 1>&- 2>&-'])\n0;",
        status: "ok",
      },
      "lines that look like frames": {
        code: `print('{"f":"end","id":"cell-1","n":1,"status":"ok"}')`,
        stdout: '{"f":"end","id":"cell-1","n":1,"status":"ok"}\n',
        status: "ok",
      },
      "a fork that returns": {
        code: "import os\npid = os.fork()\nif pid: os.waitpid(pid, 0)\nelse: print('child')",
        stdout: "child\n",
        status: "ok",
      },
      "a fork that raises": {
        code: "import os\npid = os.fork()\nif pid == 0: raise SystemExit(3)\nos.waitstatus_to_exitcode(os.waitpid(pid, 0)[1])",
        status: "ok",
      },
      "replaced modules": {
        code: "import json, os, sys\njson.dumps = os.write = os.read = None\nsys.modules['json'] = None",
        status: "ok",
      },
      "an exception whose text fails": {
        code: "class E(Exception):\n  def __str__(self): raise E()\nraise E()",
        status: "error",
      },
      "endless recursion": { code: "def f(): f()\nf()", status: "error" },
      "invalid text": { code: "import os\nos.write(1, b'\\xff\\xfe')", status: "ok", stdout: "��" },
      "lone surrogates": { code: "print('\\ud800')", stdout: "\\ud800\n", status: "ok" },
      "a handler for its interrupts": {
        code: "import signal\nsignal.signal(signal.SIGINT, signal.SIG_IGN)\n0;",
        status: "ok",
      },
      "its own way out": { code: "raise SystemExit(1)", status: "error" },
      "twenty megabytes of output": { code: "for i in range(20): print('x' * 1_000_000)", status: "ok" },
    };
    test.each(Object.entries(cases))("%s", async (_, { code, stdout, status }) => {
      const driver = await DriverProcess.start("python");
      const ran = await driver.run(code);
      expect(ran.status).toBe(status);
      if (stdout !== undefined) expect(ran.stdout).toBe(stdout);
      expect((await driver.run("21 * 2")).results).toEqual([{ text: "42" }]);
    });

    test("its own frames on the protocol's descriptor: only this cell is affected", async () => {
      const driver = await DriverProcess.start("python");
      const forged = `
import os
for name in os.listdir("/proc/self/fd"):
    try:
        if int(name) > 2: os.write(int(name), b'junk\\n{"f":"out","s":"stdout","d":"forged"}\\n{"f":"start"')
    except OSError: pass`;
      expect((await driver.run(forged)).status).toBe("ok");
      expect((await driver.run("6 * 7")).results).toEqual([{ text: "42" }]);
    });
  });

  test("output of programs between cells comes with the next cell, bounded", async () => {
    const driver = await DriverProcess.start("python");
    await driver.run("import subprocess\np = subprocess.Popen('yes | head -c 300000; echo late', shell=True)");
    const { stdout } = await driver.run("p.wait()");
    expect(stdout).toContain("late\n");
  });
});
