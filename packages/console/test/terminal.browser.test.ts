import { Sandbox } from "@sandboxer/client";
import type { Page } from "playwright-core";
import { expect, test } from "vitest";
import { startConsole } from "./support/start-console.ts";
import { countTo, terminalText, untilTerminalShows } from "./support/terminal-text.ts";

const ECHO = "echo ready; while read line; do echo got $line; done";

/** A terminal that another program has started: the page shows it, and starts none of its own. */
async function startTerminal(sandbox: Sandbox, command: string): Promise<void> {
  (await sandbox.pty({ command })).detach();
}

async function typeInto(page: Page, text: string): Promise<void> {
  await page.getByRole("textbox", { name: "Terminal input" }).first().focus();
  await page.keyboard.type(text);
}

test("a reload shows the terminal again with all its output, once, and it continues", async () => {
  const { page, client, open } = await startConsole({ path: false });
  const sandbox = await Sandbox.create({ client });
  await startTerminal(sandbox, ECHO);
  await open(`/sandboxes/${sandbox.id}`);
  await untilTerminalShows(page, "ready");
  await typeInto(page, "one\n");
  await untilTerminalShows(page, "got one");
  const before = await terminalText(page);

  await page.reload();
  await untilTerminalShows(page, "got one");
  expect(await terminalText(page)).toBe(before);
  await typeInto(page, "two\n");
  await untilTerminalShows(page, "got two");
  expect((await terminalText(page)).split("got one")).toHaveLength(2);
  expect(await page.getByRole("tab").count()).toBe(1);
});

test("a broken connection is reported and restored, and every number appears once", async () => {
  const { page, client, open } = await startConsole({ path: false });
  const cuts: (() => Promise<void>)[] = [];
  const said = Promise.withResolvers<void>();
  await page.routeWebSocket(/\/attach/, async (socket) => {
    // The next connection waits until the page has shown the loss.
    if (cuts.length > 0) await said.promise;
    socket.connectToServer();
    cuts.push(() => socket.close({ code: 1006 }).catch(() => socket.close()));
  });
  const sandbox = await Sandbox.create({ client });
  const numbers = countTo(60, 0.05);
  await startTerminal(sandbox, numbers.command);
  await open(`/sandboxes/${sandbox.id}`);
  await untilTerminalShows(page, "5,");
  await cuts[0]?.();
  await page.getByText("Reconnecting").waitFor();
  said.resolve();
  await untilTerminalShows(page, "60,");
  expect(await terminalText(page)).toBe(numbers.shown);
  await expect.poll(() => page.getByText("Reconnecting").count()).toBe(0);
});

test("text that is typed while the sandbox moves arrives once and in order", async () => {
  const { page, client, servers, open, guard } = await startConsole({ path: false, instances: 2 });
  const sandbox = await Sandbox.create({ client });
  guard.expectAnswer(409, new RegExp(`^/v1/sandboxes/${sandbox.id}/`));
  await startTerminal(sandbox, ECHO);
  await open(`/sandboxes/${sandbox.id}`);
  await untilTerminalShows(page, "ready");
  const moved = sandbox.handoff(servers[1]?.url ?? "");
  for (let number = 1; number <= 8; number += 1) await typeInto(page, `n${number}\n`);
  await moved;
  await typeInto(page, "last\n");
  await untilTerminalShows(page, "got last");
  const got = [...(await terminalText(page)).matchAll(/got (n\d|last)/g)].map(([, what]) => what);
  expect(got).toEqual(["n1", "n2", "n3", "n4", "n5", "n6", "n7", "n8", "last"]);
});

test("a terminal that is opened elsewhere reports it, and can be taken back", async () => {
  const { page, context, client, open, url } = await startConsole({ path: false });
  const sandbox = await Sandbox.create({ client });
  await startTerminal(sandbox, ECHO);
  await open(`/sandboxes/${sandbox.id}`);
  await untilTerminalShows(page, "ready");
  const other = await context.newPage();
  await other.goto(`${url}/sandboxes/${sandbox.id}`);
  await untilTerminalShows(other, "ready");
  await page.getByText("opened in another window").waitFor();
  await typeInto(other, "there\n");
  await untilTerminalShows(other, "got there");

  await page.getByRole("button", { name: "Use it here" }).click();
  await untilTerminalShows(page, "got there");
  await other.getByText("opened in another window").waitFor();
  await typeInto(page, "here\n");
  await untilTerminalShows(page, "got here");
  expect((await terminalText(page)).split("got there")).toHaveLength(2);
});

test("tabs can be renamed, left running and shown again, and ended", async () => {
  const { page, client, open, guard } = await startConsole({ path: false });
  // A terminal may be resized while its process ends.
  guard.expectAnswer(404, /\/resize$/);
  const sandbox = await Sandbox.create({ client });
  await startTerminal(sandbox, ECHO);
  await startTerminal(sandbox, "echo second; sleep 1000");
  await open(`/sandboxes/${sandbox.id}`);
  await page.getByRole("tab", { name: "Terminal 1" }).click();
  await untilTerminalShows(page, "ready");
  await page.getByRole("tab", { name: "Terminal 1" }).press("ArrowRight");
  await untilTerminalShows(page, "second");

  await page.getByRole("button", { name: "Rename", exact: true }).click();
  await page.getByRole("textbox", { name: "Name" }).fill("<b>build</b>");
  await page.getByRole("dialog").getByRole("button", { name: "Rename", exact: true }).click();
  await page.getByRole("tab", { name: "<b>build</b>" }).waitFor();

  await page.getByRole("toolbar").getByRole("button", { name: "Close" }).click();
  await page.getByRole("button", { name: "Leave running" }).click();
  expect(await page.getByRole("tab").count()).toBe(1);
  await page.getByRole("button", { name: "Show <b>build</b>" }).click();
  await untilTerminalShows(page, "second");

  await page.getByRole("toolbar").getByRole("button", { name: "Close" }).click();
  await page.getByRole("button", { name: "End", exact: true }).click();
  await expect.poll(() => page.getByRole("tab").count()).toBe(1);
  await expect.poll(async () => (await sandbox.processes()).length).toBe(1);
});

test("a rewound sandbox shows its terminal as it was then, and the terminal continues", async () => {
  const { page, client, open, guard } = await startConsole({ path: false });
  const sandbox = await Sandbox.create({ client });
  guard.expectAnswer(409, new RegExp(`^/v1/sandboxes/${sandbox.id}/`));
  await startTerminal(sandbox, ECHO);
  await open(`/sandboxes/${sandbox.id}`);
  await untilTerminalShows(page, "ready");
  await typeInto(page, "early\n");
  await untilTerminalShows(page, "got early");
  const snapshot = await sandbox.snapshot({ mode: "full" });
  await typeInto(page, "undone\n");
  await untilTerminalShows(page, "got undone");
  await sandbox.rewind(snapshot.id);
  await expect.poll(() => terminalText(page)).not.toContain("undone");
  await typeInto(page, "again\n");
  await untilTerminalShows(page, "got again");
  expect(await terminalText(page)).toContain("got early");
});
