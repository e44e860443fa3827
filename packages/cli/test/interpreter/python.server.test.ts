import { readdir, readFile, writeFile } from "node:fs/promises";
import { join } from "node:path";
import { describe, expect, test } from "vitest";
import { withHostInterpreters } from "../../../../test/kit/server/host-interpreters.ts";
import { startTestServer } from "../../../../test/kit/server/test-server.ts";
import { temporaryFolder } from "../../../../test/kit/temporary-folder.ts";
import { runProgram } from "../../src/program.ts";
import { fakeIo, type FakeIoOptions } from "../support/fake-io.ts";
import { hasPython, inTerminal } from "../support/real-terminal.ts";

const CTRL_C = "\u0003";
const CTRL_D = "\u0004";
const UP = "\u001b[A";
const PICTURE =
  "class Picture:\n  def _repr_png_(self): return b'picture'\n  def _repr_html_(self): return '<p>'\nPicture()";

async function started() {
  const folder = await temporaryFolder();
  const { httpUrl } = await startTestServer({ wrapBackend: withHostInterpreters });
  const environment = { SANDBOXER_URL: httpUrl, XDG_CONFIG_HOME: folder, XDG_STATE_HOME: folder, HOME: folder };
  const cli = async (argv: readonly string[], options: FakeIoOptions = {}) => {
    const io = fakeIo(environment, { workingDirectory: folder, homeDirectory: folder, ...options });
    const code = await runProgram(argv, io);
    return { code, out: io.out(), err: io.err() };
  };
  expect((await cli(["create", "--name", "web"])).code).toBe(0);
  return { folder, environment, cli };
}

describe.skipIf(!hasPython)("sandboxer python (skipped without python3)", () => {
  test("runs a line, a file and stdin with the same variables", async () => {
    const { cli, folder } = await started();
    expect(await cli(["python", "web", "-c", "x = 6\nprint('set')"])).toEqual({ code: 0, out: "set\n", err: "" });
    await writeFile(join(folder, "cell.py"), "x = x * 7\n");
    expect((await cli(["python", "web", "cell.py"])).code).toBe(0);
    expect(await cli(["python", "web"], { stdin: "x" })).toEqual({ code: 0, out: "42\n", err: "" });
    const failed = await cli(["python", "web", "-c", "x / 0"]);
    expect([failed.code, failed.out]).toEqual([1, ""]);
    expect(failed.err).toContain("ZeroDivisionError");
    const dead = await cli(["python", "web", "-c", "import os; os._exit(7)"]);
    expect([dead.code, dead.err]).toEqual([7, expect.stringContaining("Its variables are lost.")]);
    const json = await cli(["python", "--json", "web", "-c", "1"]);
    const events = json.out
      .trim()
      .split("\n")
      .map((line) => (JSON.parse(line) as { type: string }).type);
    expect(events).toEqual(["started", "result", "end"]);
    expect((await cli(["python", "web", "cell.py", "-c", "1"])).code).toBe(2);
  });

  test("saves pictures without overwriting a file, and names the other formats", async () => {
    const { cli, folder } = await started();
    await writeFile(join(folder, "cell-1-1.png"), "mine");
    const shown = await cli(["python", "web", "-c", PICTURE]);
    expect(shown.err).toBe("[png, 7 B: saved as cell-1-2.png]\n[also html, 3 B]\n");
    expect(await readFile(join(folder, "cell-1-1.png"), "utf8")).toBe("mine");
    expect(await readFile(join(folder, "cell-1-2.png"), "utf8")).toBe("picture");
    expect((await readdir(folder)).filter((name) => name.endsWith(".png"))).toHaveLength(2);
  });

  test("is a prompt in a terminal: blocks, history, Ctrl-C, Ctrl-D", async () => {
    const { environment } = await started();
    const first = inTerminal(["python", "web"], environment);
    await first.shows(">>> ");
    first.send("x = 20\rx + 1\r");
    await first.shows("\r\n21\r\n");
    first.send("for i in range(2):\r");
    await first.shows("... ");
    first.send("  print('row', i)\r\r");
    await first.shows("row 0\r\nrow 1\r\n");
    first.send("while True: pass\r");
    // At the prompt it would disappear too; the interpreter shows that it ran.
    await first.shows("while True: pass");
    await expect
      .poll(
        () => {
          first.send(CTRL_C);
          return first.screen();
        },
        { timeout: 60_000, interval: 200 },
      )
      .toContain('File "<cell');
    first.send(CTRL_C);
    first.send("'still ' + 'here'\r");
    await first.shows("'still here'");
    first.send(CTRL_D);
    expect(await first.ended).toEqual({ code: 0, modes_restored: true });
    const second = inTerminal(["python", "web"], environment);
    await second.shows(">>> ");
    second.send(`${UP}\r`);
    await second.shows("'still here'");
    second.send("exit()\r");
    expect(await second.ended).toEqual({ code: 0, modes_restored: true });
  });
});
