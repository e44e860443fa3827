import { mkdir, writeFile } from "node:fs/promises";
import { join } from "node:path";
import { Sandbox } from "@sandboxer/client";
import { expect, test } from "vitest";
import { whyNoEngine } from "../../../test/kit/server/server-process.ts";
import { temporaryFolder } from "../../../test/kit/temporary-folder.ts";
import { WAIT, link, chooseInMenu, listed, saved } from "./support/files-page.ts";
import { startConsole } from "./support/start-console.ts";

test("a text is edited and saved; a file that changed meanwhile is not overwritten without confirmation", async () => {
  const { page, client, open } = await startConsole({ path: false });
  const sandbox = await Sandbox.create({ client });
  await sandbox.files.write("/workspace/a.txt", "one\r\ntwo\r\n");
  await open(`/sandboxes/${sandbox.id}/files?path=/workspace/a.txt`);
  await page.getByRole("button", { name: "Edit" }).click();
  await page.getByRole("textbox", { name: "Content" }).fill("one\nthree\n");
  await page.getByRole("button", { name: "Save", exact: true }).click();
  await page.getByRole("region", { name: "Content" }).getByText("three").waitFor();
  expect(await sandbox.files.readText("/workspace/a.txt")).toBe("one\r\nthree\r\n");

  await page.getByRole("button", { name: "Edit" }).click();
  await page.getByRole("textbox", { name: "Content" }).fill("mine");
  // Unsaved text is restored after a visit to another page.
  await link(page, "Open folder").click();
  await link(page, "a.txt").click();
  expect(await page.getByRole("textbox", { name: "Content" }).inputValue()).toBe("mine");
  await sandbox.files.write("/workspace/a.txt", "of somebody else");
  await page.getByRole("button", { name: "Save", exact: true }).click();
  await page
    .getByRole("alert")
    .getByText(/changed meanwhile/)
    .waitFor();
  expect(await sandbox.files.readText("/workspace/a.txt")).toBe("of somebody else");
  await page.getByRole("button", { name: "Discard my version" }).click();
  await page.getByRole("region", { name: "Content" }).getByText("of somebody else").waitFor();

  await page.getByRole("button", { name: "Edit" }).click();
  await page.getByRole("textbox", { name: "Content" }).fill("mine again");
  await sandbox.files.write("/workspace/a.txt", "of somebody else again");
  await page.keyboard.press("Control+s");
  await page.getByRole("button", { name: "Overwrite it with my version" }).click();
  await page.getByRole("region", { name: "Content" }).getByText("mine again").waitFor();
  expect(await sandbox.files.readText("/workspace/a.txt")).toBe("mine again");
});

test("files and folders are created, renamed and removed; existing ones are never replaced silently", async () => {
  const { page, client, open } = await startConsole({ path: false });
  const sandbox = await Sandbox.create({ client });
  await sandbox.files.write("/workspace/kept.txt", "kept");
  await open(`/sandboxes/${sandbox.id}/files`);
  const dialog = page.getByRole("dialog");
  await page.getByRole("button", { name: "New folder" }).click();
  await dialog.getByLabel("Name").fill("kept.txt");
  await dialog.getByRole("button", { name: "Create folder" }).click();
  await dialog
    .getByRole("alert")
    .getByText(/already/)
    .waitFor();
  await dialog.getByLabel("Name").fill("docs");
  await dialog.getByText("Copy as command, program or curl").click();
  expect(await dialog.locator("pre").first().textContent()).toContain(
    `sandboxer files mkdir ${sandbox.id}:/workspace/docs`,
  );
  await dialog.getByRole("button", { name: "Create folder" }).click();
  await link(page, "docs").click();
  await page.getByText("The folder is empty.").waitFor();
  await page.getByRole("button", { name: "New file" }).click();
  await dialog.getByLabel("Name").fill("new.txt");
  await dialog.getByRole("button", { name: "Create file" }).click();
  await page.getByText("The file is empty.").waitFor();

  await page.getByRole("button", { name: "Rename …" }).click();
  await dialog.getByLabel("New name").fill("/workspace/kept.txt");
  await dialog.getByRole("button", { name: "Rename", exact: true }).click();
  await dialog
    .getByRole("alert")
    .getByText(/already/)
    .waitFor();
  expect(await sandbox.files.readText("/workspace/kept.txt")).toBe("kept");
  await dialog.getByLabel("New name").fill("/workspace/moved.txt");
  await dialog.getByRole("button", { name: "Rename", exact: true }).click();
  await page.getByRole("article", { name: "File moved.txt" }).waitFor();
  await link(page, "Open folder").click();

  await chooseInMenu(page, "docs", "Delete …");
  await dialog.getByRole("button", { name: "Delete folder and contents" }).click();
  await expect.poll(() => listed(page), WAIT).toEqual(["kept.txt", "moved.txt"]);
  expect(await sandbox.files.exists("/workspace/docs")).toBe(false);
});

test("files are uploaded by button and by drop, replaced only on confirmation, and downloaded", async () => {
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

test("a file of a sandbox on another server is saved through this one", async () => {
  const { page, servers, open } = await startConsole({ path: false, instances: 2 });
  const sandbox = await Sandbox.create({ client: servers[1]!.client });
  await sandbox.files.write("/workspace/far.txt", "from afar");
  await open(`/sandboxes/${sandbox.id}/files?path=/workspace/far.txt`);
  const down = await saved(page, () => page.getByRole("link", { name: "Download" }).click());
  expect(down.bytes.toString()).toBe("from afar");
});

test.skipIf(whyNoEngine() !== undefined)("a file name that is not UTF-8 can be changed", async () => {
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
    .getByText(/not UTF-8/)
    .waitFor();
  await page.goBack();
  await chooseInMenu(page, "bad\uFFFD*\uFFFD.txt", "Rename or move …");
  const dialog = page.getByRole("dialog");
  await dialog.getByLabel("New name").fill("good.txt");
  await dialog.getByRole("button", { name: "Rename", exact: true }).click();
  await link(page, "good.txt").click();
  await page.getByRole("region", { name: "Content" }).getByText("found").waitFor();
  expect((await sandbox.files.list("/workspace")).map(({ name }) => name)).toEqual([
    "bad-a.txt",
    "bad-b.txt",
    "good.txt",
  ]);
});
