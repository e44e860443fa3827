import { Sandbox } from "@sandboxer/client";
import type { Page, Route } from "playwright-core";
import { expect, test } from "vitest";
import { everyPage, isTooWide, visit } from "./support/every-page.ts";
import { HOSTILE, HOSTILE_FILE_NAMES } from "./support/hostile.ts";
import { startConsole } from "./support/start-console.ts";
import { testImages } from "./support/test-images.ts";

/** Elements that only a bug could have put into the page. Events are sent to everything, in case something listens. */
function findInjected(page: Page): Promise<string[]> {
  return page.evaluate(() => {
    const found: string[] = [];
    for (const element of document.querySelectorAll("*")) {
      for (const type of ["mouseover", "focus", "pointerenter"])
        element.dispatchEvent(new Event(type, { bubbles: true }));
      for (const { name, value } of element.attributes) {
        if (name.startsWith("on")) found.push(`${element.tagName} ${name}`);
        if (/^\s*(javascript|data|vbscript):/i.test(value) && ["href", "src", "action", "srcdoc"].includes(name)) {
          found.push(`${element.tagName} ${name}=${value.slice(0, 40)}`);
        }
      }
      if (element.matches("body script, iframe, object, embed, base")) found.push(element.outerHTML.slice(0, 80));
      if (element.matches("img:not([src^='/']):not([src^='blob:'])")) found.push(element.outerHTML.slice(0, 80));
    }
    return found;
  });
}

const REFUSED = {
  port: 80,
  address: null,
  count: 1,
  first_at: "2026-01-01T00:00:00Z",
  last_at: "2026-01-01T00:00:00Z",
};

/** Records of a store may be older than the rules for names, and come from other servers. */
async function spoilRecords(route: Route): Promise<void> {
  const response = await route.fetch();
  const body: unknown = await response.json().catch(() => undefined);
  if (body === undefined) return route.fulfill({ response });
  let next = 0;
  const hostile = (): string => HOSTILE[(next += 1) % HOSTILE.length] ?? "";
  const spoilt = JSON.stringify(body, (name, value: unknown) => {
    if (name === "names") return HOSTILE;
    if (name === "refused") return HOSTILE.map((rule) => ({ ...REFUSED, name: hostile(), rule }));
    const shown = ["name", "sandbox_name", "key", "profile", "image", "host", "url", "reason", "hint", "message"];
    return shown.includes(name) && (typeof value === "string" || value === null) ? hostile() : value;
  });
  return route.fulfill({ response, body: spoilt });
}

async function furnishHostile(client: Parameters<typeof Sandbox.create>[0]): Promise<Sandbox> {
  const labels = Object.fromEntries(HOSTILE.map((text, at) => [`${at}${text}`.slice(0, 100), text.slice(0, 1000)]));
  const sandbox = await Sandbox.create({ ...client, labels });
  for (const name of HOSTILE_FILE_NAMES) await sandbox.files.write(`/workspace/${name}`, HOSTILE.join("\n"));
  await sandbox.files.write("/workspace/everything.txt", HOSTILE.join("\n"));
  for (const text of HOSTILE.map((each) => each.replaceAll("\0", ""))) {
    await sandbox.exec(["printf", "%s", text]);
  }
  await sandbox.snapshot({ labels });
  const flood = `cat /workspace/everything.txt; sleep 1000 # ${HOSTILE.slice(0, 5).join(" ").replaceAll("\n", " ")}`;
  (await sandbox.spawn(flood, { pty: { rows: 24, columns: 80 }, detach: true })).detach();
  return sandbox;
}

test("hostile names, labels, commands, file names and output are plain text on every page, and the layout is unaffected", async () => {
  const { library, names } = await testImages();
  const { page, context, client, open } = await startConsole({ path: false, images: library });
  await client.images.pull(names[0]);
  const sandbox = await furnishHostile({ client });
  await context.route(/\/v1\/(sandboxes|snapshots|images|instances|operations)([/?][^/]*)?$/, spoilRecords);
  await context.route(/\/v1\/sandboxes\/[^/]+\/network$/, spoilRecords);
  await open("/");
  for (const { name, path } of everyPage(sandbox.id)) {
    await visit(page, path);
    expect(await findInjected(page), `${name}: something was taken for markup`).toEqual([]);
    expect(await isTooWide(page), `${name} is too wide`).toBe(false);
    expect(await page.getByRole("navigation", { name: "Sections" }).isVisible(), `${name} is whole`).toBe(true);
  }
  expect(await page.evaluate(() => navigator.clipboard.readText())).not.toContain("pwned");
  expect(context.pages()).toHaveLength(1);
});
