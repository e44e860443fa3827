import { createServer, type Server } from "node:http";
import type { AddressInfo } from "node:net";
import { Sandbox } from "@sandboxer/client";
import { expect, onTestFinished, test } from "vitest";
import { startConsole } from "./support/start-console.ts";

/** A page of another origin: same machine, another port, so that browsers treat it as the same site. */
async function startOtherOrigin(html: string): Promise<string> {
  const server: Server = createServer((_request, response) =>
    response.setHeader("content-type", "text/html; charset=utf-8").end(html),
  );
  await new Promise<void>((resolve) => server.listen(0, "127.0.0.1", resolve));
  onTestFinished(() => void server.close());
  return `http://127.0.0.1:${(server.address() as AddressInfo).port}`;
}

const sandboxNames = async (client: Parameters<typeof Sandbox.list>[1]): Promise<(string | null)[]> => {
  const names: (string | null)[] = [];
  for await (const { record } of Sandbox.list({}, client)) names.push(record.name);
  return names;
};

test.each(["with keys and a session", "without keys"])(
  "a page of another origin can neither act nor read: %s",
  async (access) => {
    const { context, client, url, guard } = await startConsole(
      access === "without keys" ? { path: false } : { path: false, keys: "admin" },
    );
    const victim = await Sandbox.create({ client, name: "victim" });
    const otherOrigin = await startOtherOrigin(`<!doctype html><title>other</title><iframe id="frame"></iframe>
      <form id="form" method="post" enctype="text/plain" action="${url}/v1/sandboxes"><input name='{"name":"forged","labels":{"a":"' value='"}}'></form>`);
    guard.allowOrigin(otherOrigin);
    guard.expectProblem(/CORS|Failed to load|frame-ancestors|X-Frame-Options|WebSocket|ERR_BLOCKED|ERR_FAILED/);
    for (const status of [403, 400, 401, 404, 415]) guard.expectAnswer(status, /./);
    const page = await context.newPage();
    await page.goto(otherOrigin);
    const seen = await page.evaluate(
      async ({ server, id }) => {
        const results: string[] = [];
        const attempt = async (what: string, path: string, init: RequestInit): Promise<void> => {
          const answer = await fetch(server + path, { credentials: "include", ...init }).catch(() => undefined);
          const text = answer?.type === "opaque" ? "" : await answer?.text();
          if (text !== undefined && text !== "") results.push(`${what}: ${text}`);
        };
        const json = { "content-type": "application/json" };
        const body = JSON.stringify({ name: "forged" });
        await attempt("post", "/v1/sandboxes", { method: "POST", headers: json, body });
        await attempt("plain post", "/v1/sandboxes", { method: "POST", body });
        await attempt("blind post", "/v1/sandboxes", { method: "POST", mode: "no-cors", body });
        await attempt("delete", `/v1/sandboxes/${id}`, { method: "DELETE" });
        await attempt("blind checkpoint", `/v1/sandboxes/${id}/checkpoint`, { method: "POST", mode: "no-cors" });
        await attempt("read", "/v1/sandboxes", {});
        await attempt("blind read", "/v1/sandboxes", { mode: "no-cors" });
        await attempt("logout", "/v1/logout", { method: "POST", mode: "no-cors" });
        const opened = await new Promise<string>((resolve) => {
          const socket = new WebSocket(`${server.replace("http", "ws")}/create`);
          socket.addEventListener("open", () => resolve("opened"));
          socket.addEventListener("error", () => resolve("refused"));
        });
        if (opened === "opened") results.push("WebSocket: opened");
        const frame = document.querySelector<HTMLIFrameElement>("#frame");
        if (frame !== null) {
          const loaded = new Promise((resolve) => frame.addEventListener("load", resolve));
          frame.src = `${server}/`;
          await loaded;
        }
        return results;
      },
      { server: url, id: victim.id },
    );
    expect(seen).toEqual([]);
    const framed = page.frames().find((frame) => frame !== page.mainFrame());
    expect(await framed?.evaluate(() => document.querySelector("#app"))).toBeNull();
    await page.evaluate(() => document.querySelector<HTMLFormElement>("#form")?.submit());
    await page.waitForURL(`${url}/v1/sandboxes`);
    expect(await sandboxNames({ client })).toEqual(["victim"]);
    expect((await victim.refresh()).state).toBe("running");
    // The console's own page may do it with the same cookie, so the origin was the reason.
    await page.goto(url);
    const made = await page.evaluate(
      async () =>
        (await fetch("/v1/sandboxes", { method: "POST", body: "{}", headers: { "content-type": "application/json" } }))
          .status,
    );
    expect(made).toBe(201);
  },
);

test("every response of the console has the strict policy, and its page has no inline script or style", async () => {
  const { context, url, page } = await startConsole();
  const answerOfPage = await context.request.get(`${url}/sandboxes/some-id/files`, {
    headers: { accept: "text/html" },
  });
  const assets = await page.evaluate(() =>
    [...document.querySelectorAll<HTMLElement>("script, link")].map(
      (element) => element.getAttribute("src") ?? element.getAttribute("href") ?? "inline",
    ),
  );
  expect(assets).not.toContain("inline");
  const answers = [answerOfPage, ...(await Promise.all(assets.map((path) => context.request.get(url + path))))];
  for (const answer of answers) {
    const headers = answer.headers();
    const policy = headers["content-security-policy"] ?? "";
    expect(policy).toContain("default-src 'none'");
    expect(policy).toContain("script-src 'self';");
    expect(policy).toContain("frame-ancestors 'none'");
    expect(policy).not.toMatch(/unsafe|\*|https?:/);
    expect(headers).toMatchObject({
      "x-content-type-options": "nosniff",
      "referrer-policy": "no-referrer",
      "cross-origin-opener-policy": "same-origin",
    });
  }
  const html = await answerOfPage.text();
  expect(html).not.toMatch(/<style|\sstyle=|\son\w+=|<script(?![^>]*\ssrc=)/i);
});

test("files of a sandbox are never rendered under the console's origin", async () => {
  const { context, client, url, guard } = await startConsole({ path: false });
  const sandbox = await Sandbox.create({ client });
  const html = "<!doctype html><title>pwned</title><script>window.pwned = 1; fetch('/v1/sandboxes')</script>";
  for (const name of ["page.html", "image.svg", "script.js", "page"]) {
    await sandbox.files.write(`/workspace/${name}`, html);
  }
  guard.expectProblem(/nosniff|MIME type|strict MIME|ERR_BLOCKED/);
  for (const name of ["page.html", "image.svg", "script.js", "page"]) {
    const address = `${url}/v1/sandboxes/${sandbox.id}/files?path=/workspace/${name}`;
    const answer = await context.request.get(address, { headers: { accept: "text/html" } });
    expect(answer.headers()["content-disposition"]).toMatch(/^attachment/);
    expect(answer.headers()["content-security-policy"]).toContain("sandbox");
    expect(answer.headers()["x-content-type-options"]).toBe("nosniff");
    expect(answer.headers()["content-type"]).toBe("application/octet-stream");
    const page = await context.newPage();
    const download = page.waitForEvent("download");
    await page.goto(address).catch(() => undefined);
    await (await download).cancel();
    expect(await page.title()).toBe("");
    await page.close();
  }
});
