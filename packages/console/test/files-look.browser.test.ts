import { Sandbox } from "@sandboxer/client";
import { expect, test } from "vitest";
import { isTooWide } from "./support/every-page.ts";
import { WAIT, link, chooseInMenu, go, listed } from "./support/files-page.ts";
import { startConsole } from "./support/start-console.ts";

test("folders are browsed by links, crumbs and typed paths; the list is sorted, and the URL has all of it", async () => {
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
  await page.getByRole("navigation", { name: "Path" }).getByRole("link", { name: "workspace" }).click();
  await link(page, "link").click();
  await page.getByRole("region", { name: "Content" }).getByText("print(1)").waitFor();
  await page.getByText("link to src/deep/main.py").waitFor();
  await page.goBack();
  await link(page, "src").waitFor();
  await go(page, "src/../src/deep");
  await link(page, "main.py").waitFor();
});

test("long texts are truncated with a notice, images are drawn, other bytes are shown in hex", async () => {
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

test("hostile names are shown literally, and can be opened, renamed and removed", async () => {
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
  await dialog.getByRole("button", { name: "Rename", exact: true }).click();
  await link(page, "two_lines").waitFor();
  await chooseInMenu(page, "invoice[U+202E]gnp.exe", "Delete …");
  await dialog.getByRole("button", { name: "Delete", exact: true }).click();
  await expect.poll(() => sandbox.files.exists("/workspace/invoice\u202Egnp.exe"), WAIT).toBe(false);
});

test("ten thousand entries render only the visible rows; a key with the scope read is offered no changes", async () => {
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
