import { createServer } from "node:http";
import { writeFile } from "node:fs/promises";
import { join } from "node:path";
import { chromium } from "playwright-core";
import { Sandbox } from "@sandboxer/client";
import { expect, inject, onTestFinished, test } from "vitest";
import { eventually } from "../../../test/kit/eventually.ts";
import { startTestServer } from "../../../test/kit/server/test-server.ts";
import { temporaryFolder } from "../../../test/kit/temporary-folder.ts";

const KEY = "a-key-that-is-long-enough-not-to-be-guessed";
const LISTEN =
  'require("net").createServer((c) => c.pipe(c)).listen(8000, "127.0.0.1", () => console.log("listening"))';

/** A page that attacks the server that serves it; `server` is the origin of the API and the console. */
const hostilePage = (server: string): string => `<!doctype html><title>inside</title><script>
  const said = (work) => work.then((answer) => answer.type === "opaque" ? "opaque" : answer.status, () => "refused");
  const post = { method: "POST", body: "{}", credentials: "include" };
  const socket = new WebSocket("${server.replace("http", "ws")}/create");
  document.cookie = "sandboxer_session=mine; domain=localhost";
  document.cookie = "tossed=1; domain=localhost";
  document.cookie = "own=1";
  window.results = Promise.all([
    said(fetch("${server}/v1/sandboxes", { credentials: "include" })),
    said(fetch("${server}/v1/sandboxes", post)),
    said(fetch("${server}/v1/sandboxes", { ...post, mode: "no-cors" })),
    new Promise((resolve) => { socket.onopen = () => resolve("open"); socket.onerror = () => resolve("refused"); }),
    document.cookie,
  ]);
</script><iframe src="${server}/"></iframe><form method="post" action="${server}/v1/sandboxes"><button>go</button></form>`;

test("a page from a sandbox reaches neither the API nor the console of its viewer, and sets no cookies for them", async () => {
  const folder = await temporaryFolder();
  await writeFile(join(folder, "index.html"), "<title>console</title>");
  const server = await startTestServer({ apiKeys: [KEY], consoleFolder: folder });
  const origin = server.httpUrl.replace("127.0.0.1", "localhost");
  const cookiesSeen: (string | undefined)[] = [];
  const inside = createServer((request, answer) => {
    cookiesSeen.push(request.headers.cookie);
    answer.setHeader("set-cookie", "wide=1; Domain=localhost").setHeader("content-type", "text/html");
    answer.end(hostilePage(origin));
  });
  server.backend.services.set(8000, (connection) => void inside.emit("connection", connection));
  const sandbox = await Sandbox.create({ url: server.httpUrl, apiKey: KEY });
  await sandbox.spawn(["node", "-e", LISTEN], { detach: true });
  await eventually("it listens", async () => (await sandbox.ports()).length === 1);
  const { url } = await sandbox.portUrl(8000);

  const browser = await chromium.connect(inject("consoleBrowser").endpoint);
  const context = await browser.newContext();
  onTestFinished(() => context.close());
  const headers = { authorization: `Bearer ${KEY}`, origin };
  expect((await context.request.post(`${origin}/v1/login`, { headers })).status()).toBe(200);
  const [session] = await context.cookies(origin);
  const page = await context.newPage();
  await page.goto(url);
  expect(await page.title()).toBe("inside");
  expect(page.url()).not.toContain("signature");
  const [read, posted, blindly, socket, cookies] = await page.evaluate<string[]>("window.results");
  expect([read, posted, socket]).toEqual(["refused", "refused", "refused"]);
  expect(["opaque", "refused"]).toContain(blindly);
  expect(cookies?.split("; ").toSorted()).toEqual(["own=1", "wide=1"]);
  expect(await context.cookies(origin)).toEqual([session]);
  expect(page.frames().map((frame) => frame.url())).not.toContain(`${origin}/`);
  await page.getByRole("button", { name: "go" }).click();
  await page.waitForURL(/v1\/sandboxes/);
  expect(cookiesSeen.join(" ")).not.toMatch(/sandboxer_/);
  expect(server.backend.runningCount).toBe(1);
});
