import { mkdir, writeFile } from "node:fs/promises";
import { join } from "node:path";
import { Sandbox } from "@sandboxer/client";
import type { Locator, Page } from "playwright-core";
import { expect, test } from "vitest";
import { whyNoEngine } from "../../server/test/websocket/support/server-process.ts";
import { temporaryFolder } from "../../server/test/websocket/support/temporary-folder.ts";
import { isTooWide } from "./support/every-page.ts";
import { startConsole } from "./support/start-console.ts";

/** The machine may be busy with other tests. */
const WAIT = { timeout: 20_000 };
const link = (page: Page, name: string): Locator => page.getByRole("link", { name, exact: true });
const chooseInMenu = async (page: Page, name: string, item: string): Promise<void> => {
  await page.getByRole("button", { name: `Actions for ${name}`, exact: true }).click();
  await page.getByRole("menuitem", { name: item, exact: true }).click();
};
const go = async (page: Page, path: string): Promise<void> => {
  await page.getByLabel("Go to a path").fill(path);
  await page.keyboard.press("Enter");
};
/** The names of what is listed, as they are seen. */
const listed = (page: Page): Promise<string[]> => page.locator(".entry-link").allTextContents();

async function saved(page: Page, click: () => Promise<void>): Promise<{ name: string; bytes: Buffer }> {
  const [download] = await Promise.all([page.waitForEvent("download"), click()]);
  const bytes = await Array.fromAsync(await download.createReadStream());
  return { name: download.suggestedFilename(), bytes: Buffer.concat(bytes as Buffer[]) };
}

test("folders are walked by links, crumbs and typed paths; the list is ordered, and all of it is in the address", async () => {
  const { page, client, open, screenshot } = await startConsole({ path: false });
  const sandbox = await Sandbox.create({ client, name: "files" });
  await sandbox.files.write("/workspace/notes-10.md", "ten");
  await sandbox.files.write("/workspace/notes-9.md", "nine is longer");
  await sandbox.files.write("/workspace/.hidden", "");
  await sandbox.files.write("/workspace/src/deep/main.py", "print(1)\n");
  await sandbox.exec("ln -s src/deep/main.py /workspace/link; ln -s nowhere /workspace/dangling");
  await open(`/sandboxes/${sandbox.id}`);
  await link(page, "Files").click();
  await expect.poll(() => listed(page), WAIT).toEqual(["src", "dangling", "link", "notes-9.md", "notes-10.md"]);
  await page.getByText("→ src/deep/main.py").waitFor();
  await screenshot("files");
  await page.getByRole("button", { name: "Size", exact: true }).click();
  await page.getByRole("button", { name: "Size", exact: true }).click();
  await expect.poll(async () => (await listed(page)).slice(0, 2), WAIT).toEqual(["src", "link"]);
  await page.getByLabel("Hidden files").check();
  await page.reload();
  await expect.poll(async () => (await listed(page)).at(-1), WAIT).toBe(".hidden");

  await link(page, "src").click();
  await link(page, "deep").click();
  await expect.poll(() => new URL(page.url()).searchParams.get("path"), WAIT).toBe("/workspace/src/deep");
  await page.getByRole("navigation", { name: "Folders on the way" }).getByRole("link", { name: "workspace" }).click();
  await link(page, "link").click();
  await page.getByRole("region", { name: "Content" }).getByText("print(1)").waitFor();
  await page.getByText("link to src/deep/main.py").waitFor();
  await page.goBack();
  await link(page, "src").waitFor();
  await go(page, "src/../src/deep");
  await link(page, "main.py").waitFor();
});

test("a text is edited and saved; one that changed meanwhile is not overwritten without being asked", async () => {
  const { page, client, open } = await startConsole({ path: false });
  const sandbox = await Sandbox.create({ client });
  await sandbox.files.write("/workspace/a.txt", "one\r\ntwo\r\n");
  await open(`/sandboxes/${sandbox.id}/files?path=/workspace/a.txt`);
  await page.getByRole("button", { name: "Edit" }).click();
  await page.getByRole("textbox", { name: "Content" }).fill("one\nthree\n");
  await page.getByRole("button", { name: "Save" }).click();
  await page.getByRole("region", { name: "Content" }).getByText("three").waitFor();
  expect(await sandbox.files.readText("/workspace/a.txt")).toBe("one\r\nthree\r\n");

  await page.getByRole("button", { name: "Edit" }).click();
  await page.getByRole("textbox", { name: "Content" }).fill("mine");
  // What is written is there again after looking elsewhere.
  await link(page, "Its folder").click();
  await link(page, "a.txt").click();
  expect(await page.getByRole("textbox", { name: "Content" }).inputValue()).toBe("mine");
  await sandbox.files.write("/workspace/a.txt", "of somebody else");
  await page.getByRole("button", { name: "Save" }).click();
  await page
    .getByRole("alert")
    .getByText(/changed meanwhile/)
    .waitFor();
  expect(await sandbox.files.readText("/workspace/a.txt")).toBe("of somebody else");
  await page.getByRole("button", { name: "Drop mine and show it" }).click();
  await page.getByRole("region", { name: "Content" }).getByText("of somebody else").waitFor();

  await page.getByRole("button", { name: "Edit" }).click();
  await page.getByRole("textbox", { name: "Content" }).fill("mine again");
  await sandbox.files.write("/workspace/a.txt", "of somebody else again");
  await page.keyboard.press("Control+s");
  await page.getByRole("button", { name: "Overwrite it with mine" }).click();
  await page.getByRole("region", { name: "Content" }).getByText("mine again").waitFor();
  expect(await sandbox.files.readText("/workspace/a.txt")).toBe("mine again");
});

test("files and folders are made, renamed and removed; nothing that is there is replaced by the way", async () => {
  const { page, client, open } = await startConsole({ path: false });
  const sandbox = await Sandbox.create({ client });
  await sandbox.files.write("/workspace/kept.txt", "kept");
  await open(`/sandboxes/${sandbox.id}/files`);
  const dialog = page.getByRole("dialog");
  await page.getByRole("button", { name: "New folder" }).click();
  await dialog.getByLabel("Name").fill("kept.txt");
  await dialog.getByRole("button", { name: "Make the folder" }).click();
  await dialog
    .getByRole("alert")
    .getByText(/already/)
    .waitFor();
  await dialog.getByLabel("Name").fill("docs");
  await dialog.getByText("Copy as command, program or curl").click();
  expect(await dialog.locator("pre").first().textContent()).toContain(
    `sandboxer files mkdir ${sandbox.id}:/workspace/docs`,
  );
  await dialog.getByRole("button", { name: "Make the folder" }).click();
  await link(page, "docs").click();
  await page.getByText("The folder is empty.").waitFor();
  await page.getByRole("button", { name: "New file" }).click();
  await dialog.getByLabel("Name").fill("new.txt");
  await dialog.getByRole("button", { name: "Make the file" }).click();
  await page.getByText("The file is empty.").waitFor();

  await page.getByRole("button", { name: "Rename …" }).click();
  await dialog.getByLabel("New name").fill("/workspace/kept.txt");
  await dialog.getByRole("button", { name: "Rename it" }).click();
  await dialog
    .getByRole("alert")
    .getByText(/already/)
    .waitFor();
  expect(await sandbox.files.readText("/workspace/kept.txt")).toBe("kept");
  await dialog.getByLabel("New name").fill("/workspace/moved.txt");
  await dialog.getByRole("button", { name: "Rename it" }).click();
  await page.getByRole("article", { name: "File moved.txt" }).waitFor();
  await link(page, "Its folder").click();

  await chooseInMenu(page, "docs", "Remove …");
  await dialog.getByRole("button", { name: "Remove it and all in it" }).click();
  await expect.poll(() => listed(page), WAIT).toEqual(["kept.txt", "moved.txt"]);
  expect(await sandbox.files.exists("/workspace/docs")).toBe(false);
});

test("files go up by button and by drop, replacing only what may be replaced, and come down", async () => {
  const { page, client, open, guard } = await startConsole({ path: false });
  const sandbox = await Sandbox.create({ client });
  await sandbox.files.write("/workspace/a.txt", "there before");
  await open(`/sandboxes/${sandbox.id}/files`);
  await link(page, "a.txt").waitFor();
  const file = (name: string, text: string) => ({ name, mimeType: "text/plain", buffer: Buffer.from(text) });
  const choose = page.getByLabel("Files to upload");
  await choose.setInputFiles([file("a.txt", "new a"), file("b.txt", "new b")]);
  const dialog = page.getByRole("dialog");
  await dialog.getByText("1 of 2 would replace").waitFor();
  await dialog.getByRole("button", { name: "Upload the other 1" }).click();
  await page.getByText("Uploaded: 1 to /workspace").waitFor();
  await link(page, "b.txt").waitFor();
  expect(await sandbox.files.readText("/workspace/a.txt")).toBe("there before");
  await choose.setInputFiles([file("a.txt", "new a")]);
  await dialog.getByRole("button", { name: "Replace it" }).click();
  await expect.poll(() => sandbox.files.readText("/workspace/a.txt"), WAIT).toBe("new a");

  const transfer = await page.evaluateHandle(() => {
    const data = new DataTransfer();
    data.items.add(new File(["dropped\n".repeat(100_000)], "dropped <b>.txt"));
    return data;
  });
  const beside = await page.evaluate((dataTransfer) => {
    const event = new DragEvent("drop", { dataTransfer, bubbles: true, cancelable: true });
    return document.body.dispatchEvent(event);
  }, transfer);
  expect(beside, "the browser would show what is dropped beside the folder").toBe(false);
  await page.locator(".folder").dispatchEvent("dragover", { dataTransfer: transfer });
  await page.getByText("Drop to upload here").waitFor();
  await page.locator(".folder").dispatchEvent("drop", { dataTransfer: transfer });
  await link(page, "dropped <b>.txt").waitFor();
  expect((await sandbox.files.stat("/workspace/dropped <b>.txt")).sizeBytes).toBe(800_000);

  const local = join(await temporaryFolder(), "app");
  await mkdir(join(local, "src"), { recursive: true });
  await writeFile(join(local, "src", "main.py"), "print(1)");
  await page.getByLabel("Folder to upload").setInputFiles(local);
  await link(page, "app").waitFor();
  expect(await sandbox.files.readText("/workspace/app/src/main.py")).toBe("print(1)");

  guard.expectAnswer(400, /\/files$/);
  await choose.setInputFiles([file("app", "no folder"), file("c.txt", "c")]);
  await dialog.getByRole("button", { name: "Replace it" }).click();
  await page.getByText("Uploaded: 1 of 2, 1 failed to /workspace").waitFor();
  await page.getByRole("alert").getByText("bad_request").waitFor();
  await page.getByRole("button", { name: "Dismiss the upload" }).click();

  await chooseInMenu(page, "dropped <b>.txt", "Copy as CLI, SDK or curl");
  await dialog.getByRole("button", { name: "Close" }).first().click();
  const down = await saved(page, () => chooseInMenu(page, "b.txt", "Download"));
  expect([down.name, down.bytes.toString()]).toEqual(["b.txt", "new b"]);
  const tar = await saved(page, () => page.getByRole("link", { name: "Download as tar" }).click());
  expect(tar.name).toBe("workspace.tar");
  expect(tar.bytes.includes("new b")).toBe(true);
});

test("long texts are cut with a notice, images are drawn, other bytes are shown as such", async () => {
  const { page, client, open, screenshot } = await startConsole({ path: false });
  const sandbox = await Sandbox.create({ client });
  await sandbox.files.write("/workspace/long.txt", "0123456789abcde\n".repeat(70_000));
  const png = "iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAYAAAAfFcSJAAAADUlEQVR42mNk+M9QDwADhgGAWjR9awAAAABJRU5ErkJggg==";
  await sandbox.files.write("/workspace/dot", Buffer.from(png, "base64"));
  await sandbox.files.write("/workspace/page.svg", `<svg onload="window.pwned=1"></svg>`);
  await sandbox.files.write(
    "/workspace/bytes",
    Uint8Array.from({ length: 5000 }, (_, index) => index % 256),
  );
  await open(`/sandboxes/${sandbox.id}/files?path=/workspace/long.txt`);
  await page.getByText("Only the first 1 MiB are shown").waitFor();
  expect(await page.getByRole("button", { name: "Edit" }).count()).toBe(0);
  await go(page, "/workspace/dot");
  const image = page.getByRole("img", { name: "The image dot" });
  await expect.poll(() => image.evaluate((element: HTMLImageElement) => element.naturalWidth), WAIT).toBe(1);
  await go(page, "/workspace/page.svg");
  await page.getByRole("region", { name: "Content" }).getByText("<svg onload=").waitFor();
  await go(page, "/workspace/bytes");
  const bytes = page.getByRole("region", { name: "Bytes" });
  await bytes.getByText("00000010  10 11 12").waitFor();
  await screenshot("files-bytes");
  await page.getByRole("button", { name: "Later" }).click();
  await bytes.getByText("00001000  00 01 02").waitFor();
});

test("names with anything in them are seen as they are, and can be opened, renamed and removed", async () => {
  const { page, client, open, screenshot } = await startConsole({ path: false });
  const sandbox = await Sandbox.create({ client });
  const shown: Readonly<Record<string, string>> = {
    "two\nlines": String.raw`two\nlines`,
    "invoice\u202Egnp.exe": "invoice[U+202E]gnp.exe",
    "<script>window.pwned=1<∕script>": "<script>window.pwned=1<∕script>",
    "%2e%2e%2Fetc?#&+": "%2e%2e%2Fetc?#&+",
    " spaces ": "␣spaces␣",
    "\"'`\\": "\"'`\\",
  };
  for (const name of Object.keys(shown)) await sandbox.files.write(`/workspace/${name}`, `content of ${name}`);
  await open(`/sandboxes/${sandbox.id}/files`);
  await expect.poll(async () => (await listed(page)).toSorted(), WAIT).toEqual(Object.values(shown).toSorted());
  await screenshot("files-names");
  await page.setViewportSize({ width: 360, height: 720 });
  expect(await isTooWide(page)).toBe(false);
  await screenshot("files-narrow");
  for (const name of Object.values(shown)) {
    await link(page, name).click();
    await page.getByRole("region", { name: "Content" }).getByText("content of").waitFor();
    await page.goBack();
  }
  await chooseInMenu(page, String.raw`two\nlines`, "Rename or move …");
  const dialog = page.getByRole("dialog");
  expect(await dialog.getByLabel("New name").inputValue()).toBe("two_lines");
  await dialog.getByRole("button", { name: "Rename it" }).click();
  await link(page, "two_lines").waitFor();
  await chooseInMenu(page, "invoice[U+202E]gnp.exe", "Remove …");
  await dialog.getByRole("button", { name: "Remove it" }).click();
  await expect.poll(() => sandbox.files.exists("/workspace/invoice\u202Egnp.exe"), WAIT).toBe(false);
});

test("ten thousand entries cost as many rows as are seen; who may only look is offered nothing else", async () => {
  const { page, client, open } = await startConsole({ path: false, keys: "read" });
  const sandbox = await Sandbox.create({ client });
  const names = Array.from({ length: 10_000 }, (_, index) => `entry-${index}`);
  await page.route("**/files/list?*", (route) =>
    route.fulfill({
      json: {
        items: names.map((name) => ({
          name,
          kind: "file",
          mode: 0o644,
          uid: 0,
          gid: 0,
          size_bytes: 1,
          modified_at: "2026-01-01T00:00:00.000Z",
          link_target: null,
        })),
        next_cursor: null,
      },
    }),
  );
  await open(`/sandboxes/${sandbox.id}/files`);
  await link(page, "entry-0").waitFor();
  expect(await page.getByRole("row").count()).toBeLessThan(80);
  await page.evaluate(() => scrollTo(0, document.body.scrollHeight));
  await link(page, "entry-9999").waitFor();
  expect(await page.getByRole("button", { name: /New f|Upload/ }).count()).toBe(0);
  await page.getByRole("button", { name: "Actions for entry-9999" }).click();
  expect(await page.getByRole("menuitem").allTextContents()).toEqual([
    "Open",
    "Download",
    "Copy the path",
    "Copy as CLI, SDK or curl",
  ]);
});

test("a file of a sandbox at another server is saved through this one", async () => {
  const { page, servers, open } = await startConsole({ path: false, instances: 2 });
  const sandbox = await Sandbox.create({ client: servers[1]!.client });
  await sandbox.files.write("/workspace/far.txt", "from afar");
  await open(`/sandboxes/${sandbox.id}/files?path=/workspace/far.txt`);
  const down = await saved(page, () => page.getByRole("link", { name: "Download" }).click());
  expect(down.bytes.toString()).toBe("from afar");
});

test.skipIf(whyNoEngine() !== undefined)("a name that is no UTF-8 is given another one", async () => {
  const { page, client, open, guard } = await startConsole({ path: false, backend: "gvisor" });
  const sandbox = await Sandbox.create({ client });
  await sandbox.exec(
    String.raw`cd /workspace && echo found > "$(printf 'bad\377*\376.txt')" && touch bad-a.txt bad-b.txt`,
  );
  await open(`/sandboxes/${sandbox.id}/files`);
  guard.expectAnswer(404, /\/files\/stat$/);
  await link(page, "bad\uFFFD*\uFFFD.txt").click();
  await page
    .getByRole("alert")
    .getByText(/no UTF-8/)
    .waitFor();
  await page.goBack();
  await chooseInMenu(page, "bad\uFFFD*\uFFFD.txt", "Rename or move …");
  const dialog = page.getByRole("dialog");
  await dialog.getByLabel("New name").fill("good.txt");
  await dialog.getByRole("button", { name: "Rename it" }).click();
  await link(page, "good.txt").click();
  await page.getByRole("region", { name: "Content" }).getByText("found").waitFor();
  expect((await sandbox.files.list("/workspace")).map(({ name }) => name)).toEqual([
    "bad-a.txt",
    "bad-b.txt",
    "good.txt",
  ]);
});
