import { spawnSync } from "node:child_process";
import { Sandbox } from "@sandboxer/client";
import type { Locator } from "playwright-core";
import { expect, test } from "vitest";
import { withHostInterpreters } from "../../../test/kit/server/host-interpreters.ts";
import { HOSTILE } from "./support/hostile.ts";
import { startConsole, type TestConsole } from "./support/start-console.ts";

const hasPython = spawnSync("python3", ["--version"]).status === 0;

interface CellsPage extends TestConsole {
  /** Runs a cell, and gives its card once it has this text. */
  readonly cell: (code: string, ends: string) => Promise<Locator>;
}

async function ended(card: Locator, how: string): Promise<void> {
  await card.getByRole("status").filter({ hasText: how }).waitFor();
}

async function startCells(): Promise<CellsPage> {
  const started = await startConsole({ path: false, wrapBackend: withHostInterpreters });
  const { page, client, open } = started;
  const sandbox = await Sandbox.create({ client });
  await open(`/sandboxes/${sandbox.id}/run`);
  await page.getByLabel("Keep variables").check();
  let number = 0;
  const cell: CellsPage["cell"] = async (code, ends) => {
    const editor = page.getByLabel(/^Code in/);
    await editor.fill(code);
    await editor.press("Control+Enter");
    const card = page.getByRole("article", { name: `Run ${(number += 1)}`, exact: true });
    await ended(card, ends);
    return card;
  };
  return { ...started, cell };
}

test.skipIf(!hasPython)("cells keep their variables, and show results, tracebacks, pictures and tables", async () => {
  const { page, cell, screenshot } = await startCells();
  await cell("x = 20", "done");
  const second = await cell("print('out')\nx + 1", "done");
  expect(await second.getByRole("log").innerText()).toBe("out\n");
  expect(await second.getByLabel("Result 1 of run 2").innerText()).toBe("21");
  const failed = await cell("x / 0", "error");
  expect(await failed.locator(".output-stderr").innerText()).toContain("ZeroDivisionError: division by zero");

  const square = "<svg xmlns='http://www.w3.org/2000/svg' width='9' height='9'><rect width='9' height='9'/></svg>";
  const drawn = await cell(`class S:\n  def _repr_svg_(self): return ${JSON.stringify(square)}\nS()`, "done");
  const width = (): Promise<number> => drawn.getByRole("img").evaluate((img) => (img as HTMLImageElement).naturalWidth);
  await expect.poll(width).toBe(9);
  // A data frame is known by its name and module; no library is needed for this.
  const frame = `
class DataFrame:
    __module__ = "pandas"
    columns = ["name", "name"]
    def head(self, _): return self
    def itertuples(self, **_): return [("a", 1), ("<b>", None)]
    def __len__(self): return 7
DataFrame()`;
  const table = (await cell(frame, "done")).getByRole("region", { name: "Table of Result 1 of run 5" });
  expect(await table.getByRole("row").allInnerTexts()).toEqual(["name\tname", "a\t1", "<b>\t"]);
  await page.getByText("The first 2 of 7 rows.").waitFor();
  await screenshot("run-cells");

  await page.getByLabel("Language").selectOption("typescript");
  await cell("const y: number = 6", "done");
  const typed = await cell("y * 7", "done");
  expect(await typed.getByLabel("Result 1 of run 7").innerText()).toBe("42");
});

test.skipIf(!hasPython)(
  "a cell is interrupted, and keeps its variables; a second stop restarts its interpreter",
  async () => {
    const { page, cell } = await startCells();
    const stop = page.getByRole("button", { name: "Stop", exact: true });
    await cell("x = 1", "done");
    const endless = await cell("import time\nprint('begun', flush=True)\nwhile True: time.sleep(0.01)", "running");
    await endless.getByRole("log").getByText("begun").waitFor();
    await stop.click();
    await ended(endless, "interrupted");
    await cell("x", "done");
    const deaf =
      "import time\nprint('begun', flush=True)\nwhile True:\n  try: time.sleep(1)\n  except BaseException: print('no', flush=True)";
    const stubborn = await cell(deaf, "running");
    await stubborn.getByRole("log").getByText("begun").waitFor();
    await stop.click();
    await stubborn.getByRole("log").getByText("no").waitFor();
    await stop.click();
    await ended(stubborn, "its variables are lost");
    const lost = await cell("x", "error");
    expect(await lost.getByRole("log").innerText()).toContain("NameError");
  },
);

test.skipIf(!hasPython)("nothing that a cell shows is executed", async () => {
  const { page, cell } = await startCells();
  const svg = "<svg xmlns='http://www.w3.org/2000/svg' onload='parent.pwned=1'><script>parent.pwned=1</script></svg>";
  const texts = JSON.stringify([...HOSTILE.map((text) => text.toWellFormed()), svg]);
  const code = `
import json
class Shown:
    def __init__(self, text): self.text = text
    def __repr__(self): return self.text
    def _repr_html_(self): return self.text
    def _repr_svg_(self): return self.text
    def _repr_javascript_(self): return "window.pwned=1"
class Plain(Shown):
    _repr_svg_ = lambda self: None
for text in json.loads(${JSON.stringify(texts)}):
    print(text); display(Plain(text)); display(Shown(text))`;
  const card = await cell(code, "done");
  await card.getByLabel("Result 50 of run 1", { exact: true }).waitFor();
  expect(await page.evaluate(() => "pwned" in window)).toBe(false);
});
