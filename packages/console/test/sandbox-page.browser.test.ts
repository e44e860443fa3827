import { createServer } from "node:http";
import { Sandbox } from "@sandboxer/client";
import { expect, onTestFinished, test } from "vitest";
import type { Locator } from "playwright-core";
import { chooseAction } from "./support/more-actions.ts";
import { startConsole } from "./support/start-console.ts";
import { terminalText, untilTerminalShows } from "./support/terminal-text.ts";

test("a paused sandbox is shown as paused; after a resume, its terminal continues", async () => {
  const { page, client, open, guard, screenshot } = await startConsole({ path: false });
  const sandbox = await Sandbox.create({ client, name: "sleeper" });
  guard.expectAnswer(409, new RegExp(`^/v1/sandboxes/${sandbox.id}/`));
  (await sandbox.pty({ command: "echo before; read x; echo got $x; sleep 1000" })).detach();
  await open(`/sandboxes/${sandbox.id}`);
  await untilTerminalShows(page, "before");
  await page.getByRole("button", { name: "Pause", exact: true }).click();
  await page.getByRole("heading", { name: "Paused" }).waitFor();
  await screenshot("sandbox-asleep");
  expect((await sandbox.refresh()).state).toBe("stored");

  await page.getByRole("button", { name: "Resume", exact: true }).click();
  await page.getByRole("textbox", { name: "Terminal input" }).focus();
  await page.keyboard.type("after\n");
  await untilTerminalShows(page, "got after");
  expect((await terminalText(page)).split("before")).toHaveLength(2);

  // A page that is opened while it is paused shows no terminal, and does not resume it.
  await sandbox.checkpoint();
  await open(`/sandboxes/${sandbox.id}`);
  await page.getByRole("heading", { name: "Paused" }).waitFor();
  expect(await page.locator(".xterm").count()).toBe(0);
  expect((await sandbox.refresh()).state).toBe("stored");
});

test("an operation in progress is shown without moving what the user is about to click", async () => {
  const { page, client, server, open } = await startConsole({ path: false });
  const sandbox = await Sandbox.create({ client, name: "saved-often" });
  await open(`/sandboxes/${sandbox.id}/facts`);
  await page.getByRole("region", { name: "Saved states" }).waitFor();
  const placeOf = async (each: Locator) => await each.boundingBox();
  const [tab, button] = [page.getByRole("link", { name: "Facts" }), page.getByRole("button", { name: "Retention …" })];
  const before = await Promise.all([tab, button].map(placeOf));
  const held = Promise.withResolvers<void>();
  onTestFinished(() => held.resolve());
  server.parts?.backend.faults.set("snapshot", { until: held.promise });
  const saving = sandbox.checkpoint({ leaveRunning: true });
  const underWay = page.getByRole("region", { name: /: running$/ });
  await underWay.waitFor();
  expect(await Promise.all([tab, button].map(placeOf))).toEqual(before);
  // Elements under it are still usable.
  const covered = await underWay.boundingBox();
  const isTaken = ([x, y]: readonly [number, number]): boolean =>
    document.elementFromPoint(x, y)?.closest(".operation") !== null;
  expect(covered).not.toBeNull();
  if (covered !== null) expect(await page.evaluate(isTaken, [covered.x + 20, covered.y + 20] as const)).toBe(false);
  held.resolve();
  await saving;
  await underWay.waitFor({ state: "detached" });
  // The facts have changed.
  expect(await placeOf(tab)).toEqual(before[0]);
});

test("a part of the page that could not be loaded is requested again automatically", async () => {
  const { page, client, open, guard } = await startConsole({ path: false });
  const sandbox = await Sandbox.create({ client });
  await open(`/sandboxes/${sandbox.id}/run`);
  const facts = page.getByRole("link", { name: "Facts" });
  await facts.waitFor();
  guard.expectProblem(/facts-tab/);
  let asked = 0;
  await page.route(/facts-tab/, async (route) => await (++asked < 3 ? route.abort("failed") : route.continue()));
  await facts.click();
  await page.getByRole("region", { name: "Saved states" }).waitFor();
  expect(asked).toBe(3);
});

test("a sandbox that is deleted while its page is open is distinguished from one that never existed", async () => {
  const { page, client, open, guard } = await startConsole({ path: false });
  guard.expectAnswer(404, /^\/v1\/sandboxes\//);
  guard.expectAnswer(410, /^\/v1\/sandboxes\//);
  const sandbox = await Sandbox.create({ client, name: "victim" });
  await open(`/sandboxes/${sandbox.id}/run`);
  await page.getByRole("heading", { name: "victim" }).waitFor();
  await sandbox.destroy();
  await page.getByText("This sandbox was deleted").waitFor();
  await open("/sandboxes/00000000-0000-4000-8000-000000000000");
  await page.getByText("There is no sandbox with this id").waitFor();
});

test("the page deletes it after a confirmation, and returns to the list", async () => {
  const { page, client, open, guard } = await startConsole({ path: false });
  guard.expectAnswer(404, /^\/v1\/sandboxes\//);
  guard.expectAnswer(410, /^\/v1\/sandboxes\//);
  const sandbox = await Sandbox.create({ client, name: "doomed" });
  await open(`/sandboxes/${sandbox.id}/run`);
  await chooseAction(page, "Delete …");
  await page.getByRole("dialog").getByText("sandboxer rm").waitFor({ state: "attached" });
  await page.getByRole("dialog").getByRole("button", { name: "Delete", exact: true }).click();
  await page.waitForURL((url) => url.pathname === "/");
  await expect.poll(async () => (await Sandbox.list({}, { client }).next()).done).toBe(true);
});

test("at 360 px the terminal is above the fold, and one button of the header is the primary one", async () => {
  const viewport = { width: 360, height: 640 };
  const { page, client, open, screenshot } = await startConsole({ path: false, browser: { viewport } });
  const sandbox = await Sandbox.create({ client, name: "on-a-phone" });
  (await sandbox.pty({ command: "echo ready; sleep 1000" })).detach();
  await open(`/sandboxes/${sandbox.id}`);
  await untilTerminalShows(page, "ready");
  await screenshot("sandbox-terminal-phone");
  const box = await page.locator(".xterm").first().boundingBox();
  expect(box?.y).toBeLessThan(viewport.height / 2);
  expect((box?.y ?? 0) + Math.min(box?.height ?? 0, 200)).toBeLessThanOrEqual(viewport.height);
  const header = page.getByRole("group", { name: "Actions" });
  expect(await header.locator(".button-primary").allInnerTexts()).toEqual(["Pause"]);
  expect(await header.getByRole("button", { name: /Delete/ }).count()).toBe(0);
});

test("a port on which a program listens is a link that opens it in a tab of its own", async () => {
  const { page, client, server, open, guard, screenshot } = await startConsole({ path: false });
  guard.expectProblem(/^request to another origin: http:\/\/8000-/);
  const inside = createServer((_request, answer) => answer.end("<title>from inside</title>"));
  server.parts?.backend.services.set(8000, (connection) => void inside.emit("connection", connection));
  const sandbox = await Sandbox.create({ client });
  const listen = 'require("net").createServer().listen(8000, "127.0.0.1")';
  await sandbox.spawn(["node", "-e", listen], { detach: true });
  await open(`/sandboxes/${sandbox.id}/processes`);
  await page.getByRole("button", { name: "Ports" }).click();
  const link = page.getByRole("link", { name: "8000" });
  await link.waitFor();
  await screenshot("sandbox-ports");
  const [preview] = await Promise.all([page.waitForEvent("popup"), link.click()]);
  await preview.waitForURL(`http://8000-${sandbox.id}.localhost:*/**`);
  expect(await preview.title()).toBe("from inside");
  expect(await preview.evaluate("opener")).toBeNull();
});

test("code runs in each language, with both streams, its exit code and a way to stop it", async () => {
  const { page, client, open, screenshot } = await startConsole({ path: false });
  const sandbox = await Sandbox.create({ client });
  await open(`/sandboxes/${sandbox.id}/run`);
  const code = page.getByLabel(/^Code in/);
  await code.fill("print('<img src=x onerror=alert(1)>')");
  await code.press("Control+Enter");
  const first = page.getByRole("article", { name: "Run 1" });
  await first.getByText("exit code 0").waitFor();
  expect(await first.getByRole("log").innerText()).toContain("<img src=x onerror=alert(1)>");

  await page.getByLabel("Language").selectOption("bash");
  await code.fill("echo out; echo err >&2; exit 3");
  await page.getByRole("button", { name: "Run", exact: true }).click();
  const second = page.getByRole("article", { name: "Run 2" });
  await second.getByText("exit code 3").waitFor();
  expect(await second.locator(".output-stderr").innerText()).toContain("err");
  await screenshot("run-code");

  await code.fill("echo begun; sleep 1000");
  await code.press("Control+Enter");
  const third = page.getByRole("article", { name: "Run 3" });
  await third.getByRole("log").getByText("begun").waitFor();
  await page.getByRole("button", { name: "Stop", exact: true }).click();
  await third.getByText("ended by SIGTERM").waitFor();

  await code.fill("echo $HOME");
  await page.getByLabel("User", { exact: true }).fill("root");
  await code.press("Control+Enter");
  const fourth = page.getByRole("article", { name: "Run 4" });
  await fourth.getByText("exit code 0").waitFor();
  expect(await fourth.getByRole("log").innerText()).toContain("/root");

  await first.getByRole("button", { name: "Edit again" }).click();
  expect(await code.inputValue()).toContain("onerror");
  // Tab indents; after Escape it leaves.
  await code.press("End");
  await code.press("Tab");
  expect(await code.inputValue()).toMatch(/ {4}$/);
  await code.press("Escape");
  await code.press("Tab");
  expect(await code.evaluate((element) => element === document.activeElement)).toBe(false);
  // Runs leave no processes behind.
  await expect.poll(async () => (await sandbox.processes()).length).toBe(0);
});

test("a process shows its output from an offset, takes input and signals, and is removed", async () => {
  const { page, client, open, screenshot } = await startConsole({ path: false });
  const sandbox = await Sandbox.create({ client });
  const process = await sandbox.spawn("echo 0123456789; while read x; do echo got $x; done", { detach: true });
  await open(`/sandboxes/${sandbox.id}/processes`);
  await page.getByRole("button", { name: /^Show .*0123456789/ }).click();
  const output = page.getByRole("log");
  await output.getByText("0123456789").waitFor();
  await page.getByLabel("From offset").fill("5");
  await page.getByLabel("From offset").press("Tab");
  await expect.poll(() => output.innerText()).toBe("56789\n");

  await page.getByLabel("Input", { exact: true }).fill("$(hello)");
  await page.getByRole("button", { name: "Send", exact: true }).click();
  await output.getByText("got $(hello)").waitFor();
  await screenshot("processes");
  // The URL shows the same.
  await page.reload();
  await expect.poll(() => output.innerText()).toContain("56789\ngot");

  await page.getByLabel("Signal", { exact: true }).selectOption("SIGKILL");
  await page.getByRole("button", { name: "Send signal" }).click();
  await page
    .getByRole("region", { name: /^Process \d/ })
    .getByText("ended by SIGKILL")
    .waitFor();
  // The page has read its output to the end, and asks for no more.
  await page.getByRole("status").getByText(", the end").waitFor();
  await page.getByRole("button", { name: "Remove", exact: true }).click();
  await page.getByText("No processes were started over HTTP").waitFor();
  await expect(process.info()).rejects.toMatchObject({ code: "process_not_found" });

  await page.getByRole("button", { name: "All processes" }).click();
  await page.getByRole("columnheader", { name: "Parent" }).waitFor();
});

test("reading the output of a terminal does not detach the user who types in it", async () => {
  const { page, context, client, open, url } = await startConsole({ path: false });
  const sandbox = await Sandbox.create({ client });
  const { id } = (await sandbox.pty({ command: "echo ready; while read x; do echo got $x; done" })).detach();
  await open(`/sandboxes/${sandbox.id}`);
  await untilTerminalShows(page, "ready");
  const other = await context.newPage();
  await other.goto(`${url}/sandboxes/${sandbox.id}/processes?process=${id}`);
  await other.getByRole("log").getByText("ready").waitFor();
  await page.getByRole("textbox", { name: "Terminal input" }).focus();
  await page.keyboard.type("hello\n");
  await untilTerminalShows(page, "got hello");
  await other.getByRole("log").getByText("got hello").waitFor();
});

test("a key with the scope read sees the output, and no buttons", async () => {
  const { page, client, open } = await startConsole({ path: false, keys: "read" });
  const sandbox = await Sandbox.create({ client, name: "glass" });
  const { id } = (await sandbox.spawn("echo visible; sleep 1000")).detach();
  await open(`/sandboxes/${sandbox.id}`);
  await page.getByText("Your key is read-only").waitFor();
  expect(await page.getByRole("group", { name: "Actions" }).getByRole("button").count()).toBe(0);
  await open(`/sandboxes/${sandbox.id}/processes?process=${id}`);
  await page.getByRole("log").getByText("visible").waitFor();
  expect(await page.getByRole("button", { name: /signal|Remove|Send/ }).count()).toBe(0);
});
