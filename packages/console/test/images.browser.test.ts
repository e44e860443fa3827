import { expect, test } from "vitest";
import { answerRange } from "../../server/test/images/support/fake-registry.ts";
import { isTooWide } from "./support/every-page.ts";
import { takeScreenshot } from "./support/screenshots.ts";
import { startConsole } from "./support/start-console.ts";
import { testImages } from "./support/test-images.ts";

test("images are pulled with progress, listed, deleted and pruned", async () => {
  const { library, registry, names } = await testImages();
  const { page, guard, client, screenshot } = await startConsole({ path: "/images", images: library });
  await page.getByText("No images.").waitFor();
  const held = Promise.withResolvers<void>();
  registry.answerBlob = (...given) => void held.promise.then(() => answerRange(...given));
  await page.getByRole("button", { name: "Pull image" }).click();
  const dialog = page.getByRole("dialog");
  await dialog.getByLabel("Image").fill(names[0]);
  await dialog.getByRole("button", { name: "Pull", exact: true }).click();
  await dialog.getByRole("region", { name: /Pull.*running/ }).waitFor();
  await screenshot("images-pull");
  held.resolve();
  await dialog.getByText(/Pulled .*team\/tool:1/).waitFor();
  await dialog.getByRole("button", { name: "Close", exact: true }).last().click();
  const table = page.getByRole("region", { name: "Images" });
  await table.getByText("team/tool:1").waitFor();

  await page.getByRole("button", { name: "Pull image" }).click();
  await dialog.getByLabel("Image").fill("team/missing:1");
  guard.expectAnswer(404, /^\/v1\/images$/);
  await dialog.getByRole("button", { name: "Pull", exact: true }).click();
  await dialog.getByText("image_not_found").waitFor();
  await page.keyboard.press("Escape");

  await client.images.pull(names[1]);
  await table.getByText("team/other:1").waitFor();
  await screenshot("images");
  await page.setViewportSize({ width: 360, height: 740 });
  expect(await isTooWide(page)).toBe(false);
  await takeScreenshot(page, "images-360");
  await page.setViewportSize({ width: 1280, height: 800 });

  await table.getByRole("button", { name: /^Delete .*team\/tool:1$/ }).click();
  await dialog.getByRole("button", { name: "Delete", exact: true }).click();
  await dialog.getByText("1 image was deleted").waitFor();
  await dialog.getByRole("button", { name: "Close", exact: true }).last().click();
  await page.getByRole("button", { name: "Prune …" }).click();
  await dialog.getByText("1 of 1").waitFor();
  await dialog.getByRole("button", { name: "Prune", exact: true }).click();
  await dialog.getByText("1 image was deleted").waitFor();
  expect(await client.images.list()).toEqual([]);
});

test("a key with the scope use pulls images and deletes none", async () => {
  const { library, names } = await testImages();
  const { page, client, open } = await startConsole({ path: false, images: library, keys: "use" });
  await client.images.pull(names[0]);
  await open("/images");
  await page.getByText("team/tool:1").waitFor();
  expect(await page.getByRole("button", { name: "Pull image" }).count()).toBe(1);
  expect(await page.getByRole("button", { name: /Delete|Prune/ }).count()).toBe(0);
});
