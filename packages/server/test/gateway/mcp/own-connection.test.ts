import { once } from "node:events";
import { createServer, type IncomingMessage, type RequestListener } from "node:http";
import { expect, test } from "vitest";
import { ownFetch } from "../../../src/gateway/mcp/own-connection.ts";

function fetchOf(listener: RequestListener): typeof globalThis.fetch {
  return ownFetch(createServer(listener), "192.0.2.7");
}

test("a request reaches the server with its body, headers and address, though nothing listens", async () => {
  const seen: unknown[] = [];
  const fetch = fetchOf((request, response) => {
    const { method, url, headers, socket } = request;
    const facts = { method, url, key: headers["sandboxer-key"], host: headers.host, from: socket.remoteAddress };
    request.once("data", (body: Buffer) => seen.push({ ...facts, body: body.toString() }));
    request.once("end", () => response.writeHead(201, { "x-answer": "yes" }).end("answer"));
  });
  const response = await fetch("http://localhost/v1/a%20b?c=d", {
    method: "PUT",
    headers: { "sandboxer-key": "k" },
    body: "text",
  });
  expect([response.status, response.headers.get("x-answer"), await response.text()]).toEqual([201, "yes", "answer"]);
  const expected = {
    method: "PUT",
    url: "/v1/a%20b?c=d",
    body: "text",
    key: "k",
    host: "localhost",
    from: "192.0.2.7",
  };
  expect(seen).toEqual([expected]);
});

test("a response without a body, and one in parts", async () => {
  const fetch = fetchOf((request, response) => {
    if (request.url === "/none") return void response.writeHead(204).end();
    response.write("a");
    setImmediate(() => response.end("b"));
  });
  const none = await fetch("http://localhost/none");
  expect([none.status, none.body]).toEqual([204, null]);
  expect(await (await fetch("http://localhost/")).text()).toBe("ab");
});

test("an abort, and a reader that leaves, end the request at the server", async () => {
  const arrived = Promise.withResolvers<IncomingMessage>();
  const leaving = new AbortController();
  const waiting = fetchOf((request) => arrived.resolve(request))("http://localhost/", { signal: leaving.signal });
  const { socket } = await arrived.promise;
  const closed = once(socket, "close");
  leaving.abort(new Error("left"));
  await expect(waiting).rejects.toThrow();
  await closed;

  const ended = Promise.withResolvers<void>();
  const response = await fetchOf((_, answer) => {
    answer.write("first");
    answer.once("close", () => ended.resolve());
  })("http://localhost/");
  await response.body?.cancel();
  await ended.promise;
});

test("a server that cuts the connection is an error", async () => {
  const cut = fetchOf(({ socket }) => void socket.destroy())("http://localhost/");
  await expect(cut).rejects.toThrow("socket hang up");
});
