import { expect, test } from "vitest";
import { Sandbox, type Sandboxer } from "@sandboxer/client";
import type { Page } from "playwright-core";
import { startConsole } from "./support/start-console.ts";

/** web, its snapshot `before`, and a sandbox that was created from it. */
async function family(client: Sandboxer): Promise<{ web: Sandbox; copy: Sandbox }> {
  const web = await Sandbox.create({ client, name: "web" });
  await web.files.write("/workspace/kept", "1");
  const before = await web.snapshot({ name: "before" });
  await web.files.write("/workspace/new <b>file</b>", "12");
  const copy = await Sandbox.restore(before.id, { client, name: "copy" });
  return { web, copy };
}

const panelOf = (page: Page) => page.getByRole("complementary");
const node = (page: Page, name: RegExp) => page.getByRole("treeitem", { name });

test("the drawing shows the lineage, and the keyboard navigates it", async () => {
  const { page, client, open, screenshot } = await startConsole({ path: false });
  const { web } = await family(client);
  await Sandbox.create({ client, name: "lonely" });
  await open(`/lineage?focus=${web.id}`);
  await node(page, /sandbox web, running/).waitFor();
  const levels = async (name: RegExp): Promise<string | null> => node(page, name).getAttribute("aria-level");
  await node(page, /sandbox copy/).waitFor();
  expect(await levels(/sandbox web/)).toBe("1");
  expect(await levels(/snapshot before/)).toBe("2");
  expect(await levels(/sandbox copy/)).toBe("3");

  const selected = (name: string) => page.getByRole("treeitem", { name, selected: true });
  await page.getByRole("tree").focus();
  await page.keyboard.press("ArrowRight");
  await selected("snapshot before").waitFor();
  await page.keyboard.press("ArrowRight");
  await selected("sandbox copy").waitFor();
  await page.keyboard.press("ArrowLeft");
  await selected("snapshot before").waitFor();
  await page.keyboard.press("ArrowLeft");
  await selected("sandbox web").waitFor();
  await page.keyboard.press("Space");
  await node(page, /sandbox copy/).waitFor({ state: "detached" });
  await page.getByRole("treeitem", { name: "sandbox web", selected: true, expanded: false }).waitFor();
  await page.keyboard.press("Space");
  await node(page, /sandbox copy/).waitFor();
  await page.keyboard.press("Enter");
  await page.waitForFunction(() => document.activeElement?.matches("aside h2"));
  await screenshot("lineage-family");

  await page.getByLabel("Search sandboxes and snapshots").fill("lone");
  await page.getByText("1 family, 1 of 4 nodes").waitFor();
  await page.getByLabel("Search sandboxes and snapshots").fill("nobody has this");
  await page.getByRole("button", { name: "Clear the search" }).click();
  await page.getByRole("button", { name: "Only relatives of web" }).click();
  await page.getByText("1 family, 3 of 4 nodes").waitFor();
  await page.getByRole("button", { name: "List" }).click();
  await page.getByRole("button", { name: /sandbox copy/ }).click();
  await panelOf(page).getByRole("heading", { name: "copy" }).waitFor();
});

test("two states are compared", async () => {
  const { page, client, open } = await startConsole({ path: false });
  const { web } = await family(client);
  await open(`/lineage?focus=${web.id}`);
  await panelOf(page).getByRole("button", { name: "Compare …" }).click();
  await node(page, /sandbox copy/).click();
  await panelOf(page).getByRole("button", { name: "Compare with web" }).click();
  const siblings = page.getByRole("dialog", { name: "From web to copy" });
  await siblings.getByRole("row", { name: "removed /workspace/new <b>file</b> 2 B –" }).waitFor();
  await page.keyboard.press("Escape");
  await node(page, /snapshot before/).click();
  await panelOf(page).getByRole("button", { name: "Compare …" }).click();
  await node(page, /sandbox web/).click();
  await panelOf(page).getByRole("button", { name: "Compare with before" }).click();
  const dialog = page.getByRole("dialog", { name: "From before to web" });
  await dialog.getByRole("row", { name: "added /workspace/new <b>file</b> – 2 B" }).waitFor();
  await dialog.getByLabel("Filter by path").fill("no such path");
  await dialog.getByText("0 listed").waitFor();
});

test("a thousand nodes are collapsed, and each can be found", async () => {
  const { page, server, open } = await startConsole({ path: false });
  const created = "2026-01-01T00:00:00.000Z";
  const snapshot = (index: number) => ({
    id: `s${index}`,
    name: `number-${index}`,
    state: "ready",
    problem: null,
    mode: "full",
    kind: "fake",
    backend: "fake",
    profile: null,
    labels: {},
    sandbox_id: "gone",
    sandbox_name: null,
    // A hundred families, one of which claims to be its own grandchild.
    parent: index === 0 ? "s200" : index < 100 ? null : `s${index - 100}`,
    children: [],
    sandboxes: [],
    reason: "request",
    pinned: false,
    encryption: null,
    proven: null,
    unproven: null,
    size_bytes: index,
    created_at: created,
    details: {},
  });
  const items = Array.from({ length: 1000 }, (_, index) => snapshot(index));
  await page.route(`${server.url}/v1/snapshots?*`, (route) => route.fulfill({ json: { items, next_cursor: null } }));
  await open("/lineage");
  await page.getByText("100 families, 1,000 nodes").waitFor();
  expect(await page.getByRole("treeitem").count()).toBe(100);
  await page.getByLabel("Search sandboxes and snapshots").fill("number-955");
  await node(page, /snapshot number-955,/).waitFor();
  expect(await page.getByRole("treeitem").count()).toBe(10);
  await page.getByLabel("Search sandboxes and snapshots").fill("");
  await page.getByRole("button", { name: "Unfold all" }).click();
  await node(page, /snapshot number-999,/).waitFor();
  expect(await page.getByRole("treeitem").count()).toBe(1000);
});
