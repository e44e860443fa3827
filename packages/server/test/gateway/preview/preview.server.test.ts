import { Readable } from "node:stream";
import { expect, test } from "vitest";
import { WebSocket, WebSocketServer } from "ws";
import { eventually } from "../../../../../test/kit/eventually.ts";
import { meanwhile } from "../../../../../test/kit/meanwhile.ts";
import { temporaryFolder } from "../../../../../test/kit/temporary-folder.ts";
import { get, listening, NAVIGATION, open, PORT } from "./support.ts";

const MEGABYTE = 1024 * 1024;

test("a program inside answers on the host of its port, and sees the origin of the request", async () => {
  const inside = await listening((request, answer) => {
    answer.setHeader("x-seen", JSON.stringify({ ...request.headers, url: request.url, method: request.method }));
    answer.end("hello");
  });
  const got = await get(inside, {
    method: "PROPFIND",
    path: "/a/%zz?b=%20c&d",
    headers: { te: "trailers", "sandboxer-x": "1" },
  });
  expect(got).toMatchObject({ status: 200, text: "hello" });
  const seen = JSON.parse(String(got.headers["x-seen"])) as Record<string, string>;
  const { port } = new URL(inside.server.httpUrl);
  expect(seen).toMatchObject({
    method: "PROPFIND",
    url: "/a/%zz?b=%20c&d",
    host: `${inside.host}:${port}`,
    "x-forwarded-host": `${inside.host}:${port}`,
    "x-forwarded-proto": "http",
    "x-forwarded-for": "127.0.0.1",
  });
  expect(Object.keys(seen)).not.toContain("te");
  expect(Object.keys(seen)).not.toContain("sandboxer-x");
});

test("neither the API nor the console is on the host of a preview, and previews are not on theirs", async () => {
  const inside = await listening((request, answer) => answer.end(`inside ${request.url}`), {
    consoleFolder: await temporaryFolder(),
    previewDomain: "https://preview.test",
  });
  for (const path of ["/", "/v1/sandboxes", "/healthz", "/docs/", "/internal/elsewhere"]) {
    expect((await get(inside, { path })).text).toBe(`inside ${path}`);
  }
  const other = await get({ ...inside, host: "nothing.preview.test" }, { path: "/v1/sandboxes" });
  expect(other.status).toBe(404);
  const ofDomain = await get({ ...inside, host: `${PORT}-${inside.id}.preview.test` }, { path: "/x" });
  expect(ofDomain.text).toBe("inside /x");
  expect((await get({ ...inside, host: "127.0.0.1" }, { path: "/internal/elsewhere" })).status).toBe(404);
});

test("a WebSocket reaches the program inside, both ways", async () => {
  const inside = await listening((_request, answer) => answer.end());
  const sockets = new WebSocketServer({ server: inside.http });
  sockets.on("connection", (socket, request) =>
    socket.on("message", (data) => socket.send(`${request.url} ${String(data)}`)),
  );
  const { port } = new URL(inside.server.httpUrl);
  const socket = new WebSocket(`ws://127.0.0.1:${port}/chat?x=1`, { headers: { host: `${inside.host}:${port}` } });
  const heard = Promise.withResolvers<string>();
  socket.on("open", () => socket.send("hi")).on("message", (data) => heard.resolve(String(data)));
  expect(await heard.promise).toBe("/chat?x=1 hi");
  const closed = new Promise((resolve) => socket.once("close", resolve));
  for (const client of sockets.clients) client.close();
  await closed;
});

test("events arrive one by one, while the response is open", async () => {
  let send = (_text: string): void => {};
  const inside = await listening((_request, answer) => {
    answer.writeHead(200, { "content-type": "text/event-stream" });
    answer.flushHeaders();
    send = (text) => void answer.write(`data: ${text}\n\n`);
  });
  const answer = await open(inside);
  expect(answer.headers["content-type"]).toBe("text/event-stream");
  const chunks = answer[Symbol.asyncIterator]() as AsyncIterator<Buffer>;
  for (const text of ["one", "two"]) {
    send(text);
    expect(String((await chunks.next()).value)).toBe(`data: ${text}\n\n`);
  }
});

test("a client that does not read makes the program wait", async () => {
  let written = 0;
  const inside = await listening((_request, answer) => {
    const body = function* (): Generator<Buffer> {
      for (; written < 64 * MEGABYTE; written += 64 * 1024) yield Buffer.alloc(64 * 1024);
    };
    Readable.from(body()).pipe(answer);
  });
  const answer = await open(inside);
  let before = -1;
  await eventually("the program waits", async () => {
    const same = written === before && written > 0;
    before = written;
    await meanwhile(50);
    return same;
  });
  expect(written).toBeLessThan(32 * MEGABYTE);
  let bytes = 0;
  for await (const chunk of answer) bytes += (chunk as Buffer).length;
  expect(bytes).toBeGreaterThanOrEqual(64 * MEGABYTE);
});

test("a large upload arrives complete", async () => {
  const inside = await listening((request, answer) => {
    let bytes = 0;
    request.on("data", (chunk: Buffer) => (bytes += chunk.length)).on("end", () => answer.end(String(bytes)));
  });
  const body = "x".repeat(16 * MEGABYTE);
  expect((await get(inside, { method: "POST", body })).text).toBe(String(body.length));
  const chunked = { method: "POST", body, headers: { "transfer-encoding": "chunked" } };
  expect((await get(inside, chunked)).text).toBe(String(body.length));
});

test("a port on which nothing listens gets a page with the next step and the open ports", async () => {
  const inside = await listening((_request, answer) => answer.end());
  const closed = { ...inside, host: `9000-${inside.id}.localhost` };
  const page = await get(closed, { headers: NAVIGATION });
  expect(page.status).toBe(502);
  expect(page.headers["content-security-policy"]).toContain("default-src 'none'");
  expect(page.text).toContain("Nothing listens on port 9000");
  expect(page.text).toContain(`port ${PORT}`);
  const told = await get(closed);
  expect(told.status).toBe(502);
  expect(JSON.parse(told.text)).toMatchObject({
    error: { code: "backend_unavailable", details: { listening: [PORT] } },
  });
});

test("invalid and truncated responses of a program are distinguished from good ones", async () => {
  const inside = await listening((_request, answer) => {
    answer.writeHead(200, { "content-length": "100" });
    answer.write("some");
    setTimeout(() => answer.destroy(), 20);
  });
  await expect(get(inside)).rejects.toThrow("aborted");
  inside.server.backend.services.set(PORT, (connection) => void connection.end("SSH-2.0-x\r\n"));
  expect((await get(inside)).status).toBe(502);
  const switching = "HTTP/1.1 101 Switching Protocols\r\nConnection: Upgrade\r\nUpgrade: x\r\n\r\n";
  inside.server.backend.services.set(PORT, (connection) => void connection.write(switching));
  expect(await get(inside)).toMatchObject({
    status: 502,
    text: expect.stringContaining("switched protocols") as string,
  });
});

test("the number of open requests is bounded, and another sandbox keeps its share", async () => {
  const inside = await listening(() => {}, { maxPreviews: 4 });
  const pending = open(inside).catch(() => {});
  await eventually("the request is open", async () => (await get(inside)).status === 429);
  expect((await get(inside)).headers["retry-after"]).toBe("1");
  void pending;
});
