import { spawnSync } from "node:child_process";
import { writeFile } from "node:fs/promises";
import { join } from "node:path";
import { beforeEach, describe, expect, test } from "vitest";
import { oldestPython } from "../../../../../test/kit/oldest-python.ts";
import { temporaryFolder } from "../../../../../test/kit/temporary-folder.ts";
import { driverOf } from "../../../src/manager/interpreter/languages.ts";
import { DriverProcess } from "./driver-process.ts";

const hasPython = spawnSync("python3", ["--version"]).status === 0;
const oldest = oldestPython();

test.skipIf(!hasPython)("the driver is written in the language of Python 3.8", async () => {
  const { program } = await driverOf("python");
  const check = "import ast, sys; ast.parse(sys.stdin.read(), feature_version=(3, 8))";
  const checked = spawnSync("python3", ["-c", check], { input: program, encoding: "utf8" });
  expect([checked.status, checked.stderr]).toEqual([0, ""]);
});

describe.each([
  ["of this machine", hasPython ? process.env["PATH"] : undefined],
  ["3.8", oldest === undefined ? undefined : `${oldest}:${process.env["PATH"]}`],
])("the driver on Python %s", (_, path) => {
  beforeEach(({ skip }) => skip(path === undefined, "There is no such Python."));
  const start = (cwd?: string): Promise<DriverProcess> =>
    DriverProcess.start("python", { ...(cwd === undefined ? {} : { cwd }), env: { PATH: path ?? "" } });

  test("objects show themselves in the formats that they have", async () => {
    const driver = await start();
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

  test("a cell may await, use shell lines, and import modules of its folder without replacing ours", async () => {
    const cwd = await temporaryFolder();
    await writeFile(join(cwd, "json.py"), "raise SystemError('imported')\n");
    await writeFile(join(cwd, "own.py"), "value = 7\n");
    const driver = await start(cwd);
    expect((await driver.run("import own\nown.value")).results).toEqual([{ text: "7" }]);
    expect((await driver.run("import asyncio\nawait asyncio.sleep(0)\nawait asyncio.sleep(0, 5)")).results).toEqual([
      { text: "5" },
    ]);
    expect(await driver.run("!echo from a shell\nprint('and python')")).toMatchObject({
      stdout: "from a shell\nand python\n",
    });
    expect((await driver.run("if True: print('a'\n")).error).toMatchObject({ name: "SyntaxError" });
  });

  test("a traceback marks the place in the last line of a cell", async () => {
    const driver = await start();
    const { error } = await driver.run("text = 'a\x0cb'\n1/0");
    const lines = error?.traceback.split("\n") ?? [];
    const source = lines.findIndex((line) => line.trim() === "1/0");
    // Before Python 3.11 nothing is marked.
    expect([-1, lines[source]?.indexOf("1/0")]).toContain(lines[source + 1]?.indexOf("~^~"));
  });

  test("an interrupt ends a cell, and only a cell", async () => {
    const driver = await start();
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
        code: "import os\npid = os.fork()\nif pid == 0: raise SystemExit(3)\nos.WEXITSTATUS(os.waitpid(pid, 0)[1])",
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
      const driver = await start();
      const ran = await driver.run(code);
      expect(ran.status).toBe(status);
      if (stdout !== undefined) expect(ran.stdout).toBe(stdout);
      expect((await driver.run("21 * 2")).results).toEqual([{ text: "42" }]);
    });

    test("its own frames on the protocol's descriptor: only this cell is affected", async () => {
      const driver = await start();
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
    const driver = await start();
    await driver.run("import subprocess\np = subprocess.Popen('yes | head -c 300000; echo late', shell=True)");
    const { stdout } = await driver.run("p.wait()");
    expect(stdout).toContain("late\n");
  });
});
