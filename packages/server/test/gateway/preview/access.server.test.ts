import type { IncomingMessage, ServerResponse } from "node:http";
import { expect, test } from "vitest";
import type { PortLink } from "@sandboxer/protocol";
import { WebSocket } from "ws";
import { startTestServer } from "../../../../../test/kit/server/test-server.ts";
import { call, get, type Inside, listening, NAVIGATION, PORT, sandboxOn, serveInside } from "./support.ts";

const KEY = "a-key-that-is-long-enough-not-to-be-guessed";
const bearer = { authorization: `Bearer ${KEY}` };

/** Answers with the headers that it got. */
function headersSeen(request: IncomingMessage, answer: ServerResponse): void {
  answer.end(JSON.stringify({ ...request.headers, url: request.url }));
}

async function guarded(body: object = {}, program = headersSeen): Promise<Inside> {
  const server = await startTestServer({ apiKeys: [KEY] });
  serveInside(server.backend, program);
  return await sandboxOn(server, body, KEY);
}

async function linkTo({ server, id }: Inside, expires = "1h"): Promise<URL> {
  const link = (await call(server, "POST", `/v1/sandboxes/${id}/port-links`, { port: PORT, expires }, KEY)) as PortLink;
  return new URL(link.url);
}

test("a preview is private: strangers learn nothing, not even whether the sandbox exists", async () => {
  const inside = await guarded();
  const refused = await get(inside);
  expect(refused.status).toBe(401);
  const nowhere = { ...inside, host: `${PORT}-${"0".repeat(8)}-0000-4000-8000-${"0".repeat(12)}.localhost` };
  expect(await get(nowhere)).toMatchObject({ status: 401, text: refused.text });
  expect((await get(nowhere, { headers: bearer })).status).toBe(404);
  const page = await get(inside, { headers: NAVIGATION });
  expect(page).toMatchObject({ status: 401 });
  expect(page.text).toContain("sandboxer url");
});

test("a key opens it, and neither the key nor our headers reach the program", async () => {
  const inside = await guarded();
  const credentials = [
    bearer,
    { "x-api-key": KEY },
    { "sandboxer-key": KEY },
    { "sandboxer-token": inside.token },
    { authorization: `Bearer ${inside.token}` },
  ];
  for (const headers of credentials) {
    const got = await get(inside, {
      headers: { ...headers, cookie: "sandboxer_session=s; own=1; sandboxer_preview=p" },
    });
    expect(got.status).toBe(200);
    expect(got.text).not.toContain(KEY);
    expect(got.text).not.toContain(inside.token);
    expect(JSON.parse(got.text)).toMatchObject({ cookie: "own=1" });
  }
  const own = await get(inside, { headers: { "sandboxer-key": KEY, authorization: "Bearer of-the-program" } });
  expect(JSON.parse(own.text)).toMatchObject({ authorization: "Bearer of-the-program" });
});

test("a signed link sets a cookie for its own host, and is removed from the address bar", async () => {
  const inside = await guarded();
  const link = await linkTo(inside);
  expect(link.host).toContain(inside.host);
  const first = await get(inside, { path: `/a${link.search}&b=1`, headers: NAVIGATION });
  expect(first).toMatchObject({ status: 303, headers: { location: "/a?b=1" } });
  const away = await get(inside, { path: `/\\evil.test/${link.search}`, headers: NAVIGATION });
  expect(away.headers.location).toBe("/evil.test/");
  const [cookie = ""] = first.headers["set-cookie"] ?? [];
  expect(cookie).toMatch(/^sandboxer_preview=[^;]+; Path=\/; HttpOnly; SameSite=Lax; Max-Age=3\d{3}$/);
  const shown = { cookie: cookie.split(";", 1)[0] ?? "" };
  const tossed = { cookie: `sandboxer_preview=of-another-page; ${shown.cookie}` };
  const page = await get(inside, { path: "/a?b=1", headers: { ...NAVIGATION, ...tossed } });
  expect(JSON.parse(page.text)).not.toHaveProperty("cookie");
  expect(page.headers["cache-control"]).toBe("private");
  // A program without cookies uses the link as it is; the program inside does not see the signature.
  const direct = await get(inside, { path: `/x${link.search}` });
  expect(JSON.parse(direct.text)).toMatchObject({ url: "/x" });
});

test("a link is for one port of one sandbox, and ends", async () => {
  const inside = await guarded();
  const { search } = await linkTo(inside);
  expect((await get({ ...inside, host: `9000-${inside.id}.localhost` }, { path: `/${search}` })).status).toBe(401);
  const other = await sandboxOn(inside.server, {}, KEY);
  expect((await get(other, { path: `/${search}` })).status).toBe(401);
  const forged = search.replace(/\d{10}/, (seconds) => String(Number(seconds) + 1));
  expect((await get(inside, { path: `/${forged}` })).status).toBe(401);
  const short = await linkTo(inside, "1s");
  while ((await get(inside, { path: `/${short.search}` })).status === 200);
  expect((await get(inside, { path: `/${short.search}` })).text).toContain("expired");
  await expect(linkTo(inside, "31d")).rejects.toThrow("400");
});

test("the sandbox's token in the address opens it, and becomes a cookie in a browser", async () => {
  const inside = await guarded();
  const path = `/?sandbox_token=${inside.token}`;
  const first = await get(inside, { path, headers: NAVIGATION });
  expect(first).toMatchObject({ status: 303, headers: { location: "/" } });
  const cookie = first.headers["set-cookie"]?.[0]?.split(";", 1)[0] ?? "";
  expect((await get(inside, { headers: { cookie } })).status).toBe(200);
  expect((await get(inside, { path: "/?sandbox_token=wrong" })).status).toBe(401);
});

test("links to a port are withdrawn together, with their cookies; other ports and new links work", async () => {
  const inside = await guarded();
  const path = `/v1/sandboxes/${inside.id}/port-links`;
  const { search } = await linkTo(inside);
  const visit = await get(inside, { path: `/${search}`, headers: NAVIGATION });
  const cookie = visit.headers["set-cookie"]?.[0]?.split(";", 1)[0] ?? "";
  expect((await get(inside, { headers: { cookie } })).status).toBe(200);
  await call(inside.server, "DELETE", `${path}?port=9000`, undefined, KEY);
  expect((await get(inside, { path: `/${search}` })).status).toBe(200);
  await call(inside.server, "DELETE", `${path}?port=${PORT}`, undefined, KEY);
  expect((await get(inside, { headers: { cookie } })).status).toBe(401);
  const refused = await get(inside, { path: `/${search}` });
  expect(refused).toMatchObject({ status: 401, text: expect.stringContaining("was withdrawn") as string });
  expect((await get(inside, { path: `/${(await linkTo(inside)).search}` })).status).toBe(200);
  await call(inside.server, "POST", `/v1/sandboxes/${inside.id}/checkpoint`, undefined, KEY);
  await call(inside.server, "DELETE", `${path}?port=${PORT}`, undefined, KEY);
  expect((await get(inside, { path: `/${search}` })).status).toBe(401);
  const byToken = await get(inside, { path: `/?sandbox_token=${inside.token}`, headers: NAVIGATION });
  const fresh = byToken.headers["set-cookie"]?.[0]?.split(";", 1)[0] ?? "";
  expect((await get(inside, { headers: { cookie: fresh } })).status).toBe(200);
});

test("a port is public on request, at creation or later, and other ports stay private", async () => {
  const inside = await guarded({ public_ports: [PORT] });
  expect((await get(inside)).status).toBe(200);
  expect((await get({ ...inside, host: `9000-${inside.id}.localhost` })).status).toBe(401);
  const path = `/v1/sandboxes/${inside.id}`;
  const link = (await call(inside.server, "POST", `${path}/port-links`, { port: PORT }, KEY)) as PortLink;
  expect(link).toMatchObject({ expires_at: null, url: expect.not.stringContaining("?") as string });
  await call(inside.server, "PATCH", path, { public_ports: [] }, KEY);
  expect((await get(inside)).status).toBe(401);
  expect(await call(inside.server, "GET", path, undefined, KEY)).toMatchObject({ public_ports: [] });
});

test("a server without keys opens nothing through a proxy that it does not trust, not even a public port", async () => {
  const server = await startTestServer();
  serveInside(server.backend, headersSeen);
  const inside = await sandboxOn(server, { public_ports: [PORT] });
  const link = (await call(server, "POST", `/v1/sandboxes/${inside.id}/port-links`, { port: 9000 })) as PortLink;
  const linked = { host: `9000-${inside.id}.localhost` };
  for (const header of ["via", "forwarded", "x-forwarded-for"]) {
    const headers = { [header]: "1.1 proxy" };
    expect(await get(inside, { headers })).toMatchObject({ status: 403, text: expect.stringContaining("no keys") });
    expect(await get({ ...inside, ...linked }, { path: `/${new URL(link.url).search}`, headers })).toMatchObject({
      status: 403,
    });
  }
  expect((await get(inside)).status).toBe(200);
  const behindKeys = await guarded({ public_ports: [PORT] });
  expect((await get(behindKeys, { headers: { via: "1.1 proxy" } })).status).toBe(200);
});

test("pages of other sites cannot use the cookie of a preview, nor a server without keys", async () => {
  const open = await listening(headersSeen);
  const { port } = new URL(open.server.httpUrl);
  const own = await guarded();
  const { search } = await linkTo(own);
  const visit = await get(own, { path: `/${search}`, headers: NAVIGATION });
  const cookie = visit.headers["set-cookie"]?.[0]?.split(";", 1)[0] ?? "";
  for (const [inside, headers] of [
    [open, {}],
    [own, { cookie }],
  ] as const) {
    const get1 = async (more: Record<string, string>, method = "GET"): Promise<number> =>
      (await get(inside, { method, headers: { ...headers, ...more } })).status;
    expect(await get1({ "sec-fetch-site": "cross-site", "sec-fetch-mode": "no-cors" })).toBe(403);
    expect(
      await get1({ "sec-fetch-site": "same-site", "sec-fetch-mode": "cors", origin: "http://evil.localhost" }),
    ).toBe(403);
    expect(await get1({ origin: "null" }, "POST")).toBe(403);
    const anotherSandbox = `http://${PORT}-00000000-0000-4000-8000-000000000000.localhost:${port}`;
    expect(await get1({ origin: anotherSandbox }, "POST")).toBe(403);
    expect(await get1({ ...NAVIGATION, "sec-fetch-site": "cross-site" })).toBe(200);
    expect(await get1({ origin: `http://5173-${inside.id}.localhost:${port}` }, "POST")).toBe(200);
    expect(await get1({ origin: `http://${inside.host}:${port}`, "sec-fetch-site": "same-origin" }, "POST")).toBe(200);
  }
  const socket = new WebSocket(`ws://127.0.0.1:${port}/`, {
    headers: { host: `${open.host}:${port}`, origin: "http://evil.test" },
  });
  const refused = await new Promise<Error>((resolve) => socket.once("error", resolve));
  expect(refused.message).toContain("403");
});

test("a page inside cannot set cookies for its parent domain, nor act beyond its host", async () => {
  const inside = await listening((_request, answer) => {
    answer.setHeader("set-cookie", [
      "a=1; Domain=localhost; Path=/",
      "b=2; path=/; domain=.example.test; HttpOnly",
      "sandboxer_session=stolen",
      "__Host-sandboxer_session=stolen; Secure",
      "sandboxer_preview=mine; Domain=localhost",
      "c=3; DOMAIN",
    ]);
    answer.setHeader("clear-site-data", '"cookies"');
    answer.setHeader("strict-transport-security", "max-age=9; includeSubDomains");
    answer.setHeader("alt-svc", 'h3=":443"');
    answer.setHeader("origin-agent-cluster", "?0");
    answer.setHeader("cache-control", "public, max-age=60, s-maxage=60");
    answer.setHeader("connection", "x-hop");
    answer.setHeader("x-hop", "1");
    answer.end();
  });
  const { headers } = await get(inside);
  expect(headers["set-cookie"]).toEqual(["a=1; Path=/", "b=2; path=/; HttpOnly", "c=3"]);
  for (const name of ["clear-site-data", "strict-transport-security", "alt-svc", "x-hop"]) {
    expect(headers).not.toHaveProperty(name);
  }
  expect(headers).toMatchObject({ "origin-agent-cluster": "?1", "cache-control": "private, max-age=60" });
});

test("a page inside can neither use the API nor frame the console", async () => {
  const { server, host } = await listening(headersSeen);
  const { port } = new URL(server.httpUrl);
  const page = `http://${host}:${port}`;
  const post = await fetch(`${server.httpUrl}/v1/sandboxes`, {
    method: "POST",
    headers: { "content-type": "application/json", origin: page },
    body: "{}",
  });
  expect(post.status).toBe(403);
  const form = { origin: page, "content-type": "text/plain", "sec-fetch-site": "cross-site" };
  expect((await fetch(`${server.httpUrl}/v1/sandboxes`, { method: "POST", headers: form, body: "{}" })).status).toBe(
    403,
  );
  const api = await fetch(`${server.httpUrl}/v1/sandboxes`);
  expect(api.headers.get("content-security-policy")).toContain("frame-ancestors 'none'");
  expect(api.headers.get("cross-origin-resource-policy")).toBe("same-origin");
});

test("programs reach a port below the API's address, and browsers do not", async () => {
  const inside = await guarded({}, (request, answer) => {
    answer.setHeader("set-cookie", "a=1");
    answer.setHeader("content-security-policy", "default-src *");
    answer.setHeader("access-control-allow-origin", "*");
    answer.setHeader("content-type", "text/html");
    answer.writeHead(302, { location: "/login" });
    answer.end(JSON.stringify({ ...request.headers, url: request.url }));
  });
  const base = `/v1/sandboxes/${inside.id}/ports/${PORT}`;
  const api = { server: inside.server, host: "127.0.0.1" };
  const got = await get(api, { path: `${base}/a/b?sandbox_token=own&x=%20`, headers: { ...bearer, cookie: "c=1" } });
  expect(got.status).toBe(302);
  const seen = JSON.parse(got.text) as Record<string, string>;
  expect(seen).toMatchObject({
    url: "/a/b?sandbox_token=own&x=%20",
    host: `localhost:${PORT}`,
    "x-forwarded-prefix": base,
  });
  expect(seen).not.toHaveProperty("cookie");
  expect(seen).not.toHaveProperty("authorization");
  expect(got.headers).toMatchObject({
    location: `${base}/login`,
    "content-security-policy": expect.stringContaining("sandbox") as string,
    "x-content-type-options": "nosniff",
    "cache-control": "no-store",
  });
  expect(got.headers).not.toHaveProperty("set-cookie");
  expect(got.headers).not.toHaveProperty("access-control-allow-origin");
  expect((await get(api, { path: base })).status).toBe(401);
  const browser = await get(api, { path: base, headers: { ...bearer, ...NAVIGATION } });
  expect(browser.status).toBe(403);
  expect(browser.text).toContain(inside.host);
  const byFetch = await fetch(inside.server.httpUrl + base, { headers: bearer, redirect: "manual" });
  expect(byFetch.status).toBe(302);
  expect((await get(api, { path: `${base}x`, headers: bearer })).status).toBe(404);
});

test("wrong keys are limited, and a program's own authorization does not count", async () => {
  const inside = await guarded({ public_ports: [9000] });
  serveInside(inside.server.backend, headersSeen, 9000);
  const wrong = async (): Promise<number> => (await get(inside, { headers: { authorization: "Bearer wrong" } })).status;
  const statuses = await Promise.all(Array.from({ length: 12 }, wrong));
  expect(statuses).toContain(429);
  const ofProgram = { ...inside, host: `9000-${inside.id}.localhost` };
  // Nothing listens there, which only those learn who may open it.
  expect((await get(ofProgram, { headers: { authorization: "Bearer own" } })).status).toBe(502);
});
