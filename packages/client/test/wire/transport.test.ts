import { describe, expect, test } from "vitest";
import { SandboxerError, Sandboxer } from "../../src/index.ts";
import { deadUrl, failure, scriptedServer, type ScriptedAnswer } from "../support/scripted-server.ts";

const QUICK = { retry: { firstDelayMs: 1 } };
const RECORD = { status: 200, body: { id: "x" } };
const CREATED = { status: 201, body: { id: "x" } };

describe("a call", () => {
  test("goes to its path, below the path of the base, with key, epoch and query", async () => {
    const server = await scriptedServer({ status: 200, body: { items: [], next_cursor: null } });
    const client = new Sandboxer({ url: `${server.url}/behind/a/proxy/`, apiKey: "secret" });
    await client.call("listSandboxes", { query: { label: ["a=b c", "d"], limit: 5 } }, { epoch: 7 });
    const [request] = server.requests;
    expect(request).toMatchObject({
      method: "GET",
      path: "/behind/a/proxy/v1/sandboxes?label=a%3Db+c&label=d&limit=5",
      headers: { authorization: "Bearer secret", "if-sandbox-epoch": "7", accept: "application/json" },
    });
    expect(request?.headers).not.toHaveProperty("idempotency-key");
  });

  test("escapes parameters so that each stays one path segment", async () => {
    const server = await scriptedServer(RECORD);
    const client = new Sandboxer({ url: server.url });
    await client.call("getSandbox", { params: { id: "a/../b?c#d e" } });
    expect(server.requests[0]?.path).toBe("/v1/sandboxes/a%2F..%2Fb%3Fc%23d%20e");
    for (const id of ["", ".", ".."]) {
      await expect(client.call("getSandbox", { params: { id } })).rejects.toMatchObject({ code: "bad_request" });
    }
    expect(server.requests).toHaveLength(1);
  });

  test("with an invalid URL fails at once", () => {
    expect(() => new Sandboxer({ url: "localhost:8080" })).toThrow(SandboxerError);
    expect(() => new Sandboxer({ url: "ftp://x" })).toThrow("is not the URL of a server");
  });

  test("uses the given fetch, and http://127.0.0.1:8080 by default", async () => {
    const urls: string[] = [];
    const fetch = async (url: unknown): Promise<Response> => {
      urls.push(String(url));
      return Response.json({ id: "x" });
    };
    await new Sandboxer({ fetch }).call("getSandbox", { params: { id: "x" } });
    expect(urls).toEqual(["http://127.0.0.1:8080/v1/sandboxes/x"]);
  });
});

describe("errors", () => {
  test("have the code, message, hint and details of the server", async () => {
    const server = await scriptedServer(failure(409, "lease_held", { url: "http://b", epoch: 3 }));
    const refused = new Sandboxer({ url: server.url }).call("getSandbox", { params: { id: "x" } });
    await expect(refused).rejects.toBeInstanceOf(SandboxerError);
    await expect(refused).rejects.toMatchObject({
      code: "lease_held",
      message: "It is lease_held.",
      hint: "Do this.",
      details: { url: "http://b", epoch: 3 },
    });
  });

  test("of a newer server get the nearest known code, and keep their own in the details", async () => {
    const server = await scriptedServer(
      failure(404, "no_such_thing"),
      failure(418, "teapot"),
      failure(500, "toString"),
    );
    const client = new Sandboxer({ url: server.url });
    const call = (): Promise<unknown> => client.call("serverInfo", {});
    await expect(call()).rejects.toMatchObject({ code: "bad_request", details: { code: "no_such_thing" } });
    await expect(call()).rejects.toMatchObject({ code: "bad_request", details: { code: "teapot" } });
    await expect(call()).rejects.toMatchObject({ code: "internal", details: { code: "toString" } });
  });

  test("of a program that is not a sandboxer server are explained", async () => {
    const html =
      (status: number): ScriptedAnswer =>
      (response) =>
        response.writeHead(status).end("<html>no</html>");
    const server = await scriptedServer(html(405), html(200));
    const client = new Sandboxer({ url: server.url });
    await expect(client.info()).rejects.toMatchObject({
      hint: expect.stringContaining("URL"),
      details: { status: 405 },
    });
    await expect(client.info()).rejects.toMatchObject({
      code: "internal",
      message: expect.stringContaining("not JSON"),
    });
  });

  test("of an unreachable server name it and the next step", async () => {
    const url = await deadUrl();
    const gone = new Sandboxer({ url, ...QUICK });
    await expect(gone.info()).rejects.toMatchObject({
      code: "server_unreachable",
      message: expect.stringMatching(`^No answer from ${url} \\(.*ECONNREFUSED`),
      hint: expect.stringContaining("sandboxer serve"),
    });
  });
});

describe("repetition", () => {
  test("a create whose connection broke is repeated with the same key", async () => {
    const server = await scriptedServer("hang up", failure(503, "draining"), CREATED);
    const client = new Sandboxer({ url: server.url, ...QUICK });
    await expect(client.call("createSandbox", { body: {} })).resolves.toEqual({ id: "x" });
    const keys = server.requests.map(({ headers }) => headers["idempotency-key"]);
    expect(keys).toHaveLength(3);
    expect(new Set(keys).size).toBe(1);
    expect(keys[0]).toMatch(/^[0-9a-f-]{36}$/);
  });

  test("two creates have two keys, unless one is given", async () => {
    const server = await scriptedServer(CREATED);
    const client = new Sandboxer({ url: server.url });
    await client.call("createSandbox", { body: {} });
    await client.call("createSandbox", { body: {} });
    await client.call("createSandbox", { body: {} }, { idempotencyKey: "mine" });
    const keys = server.requests.map(({ headers }) => headers["idempotency-key"]);
    expect(new Set(keys).size).toBe(3);
    expect(keys[2]).toBe("mine");
  });

  test("a call without a key that may have been executed is repeated after a refusal, but not after a lost connection", async () => {
    const body = { signal: "SIGINT" };
    const params = { id: "x", process_id: "p" };
    const cut = await scriptedServer("hang up", { status: 204 });
    const client = new Sandboxer({ url: cut.url, ...QUICK });
    await expect(client.call("signalProcess", { params, body })).rejects.toMatchObject({ code: "server_unreachable" });
    expect(cut.requests).toHaveLength(1);
    const refusing = await scriptedServer(failure(503, "draining"), { status: 204 });
    await new Sandboxer({ url: refusing.url, ...QUICK }).call("signalProcess", { params, body });
    expect(refusing.requests).toHaveLength(2);
  });

  test("a destroy whose first attempt was lost takes a 404 for success; a first attempt does not", async () => {
    const params = { id: "x" };
    const cut = await scriptedServer("hang up", failure(410, "sandbox_destroyed"));
    await expect(new Sandboxer({ url: cut.url, ...QUICK }).call("destroySandbox", { params })).resolves.toBeUndefined();
    const gone = await scriptedServer(failure(410, "sandbox_destroyed"));
    const destroyed = new Sandboxer({ url: gone.url, ...QUICK }).call("destroySandbox", { params });
    await expect(destroyed).rejects.toMatchObject({ code: "sandbox_destroyed" });
  });

  test("permanent errors are not repeated", async () => {
    const server = await scriptedServer(failure(503, "no_space"));
    await expect(new Sandboxer({ url: server.url, ...QUICK }).info()).rejects.toMatchObject({ code: "no_space" });
    expect(server.requests).toHaveLength(1);
  });

  test("ends after the allowed attempts", async () => {
    const server = await scriptedServer(failure(503, "store_unavailable"));
    const client = new Sandboxer({ url: server.url, retry: { attempts: 3, firstDelayMs: 1 } });
    await expect(client.info()).rejects.toMatchObject({ code: "store_unavailable" });
    expect(server.requests).toHaveLength(3);
  });

  test("a truncated body is read again", async () => {
    const half: ScriptedAnswer = (response) => {
      response.writeHead(200, { "content-length": 100 });
      response.write('{"version":');
      setImmediate(() => response.destroy());
    };
    const server = await scriptedServer(half, { status: 200, body: { version: "1" } });
    await expect(new Sandboxer({ url: server.url, ...QUICK }).info()).resolves.toEqual({ version: "1" });
  });
});

describe("aborting", () => {
  test("ends a call with the signal's reason", async () => {
    const server = await scriptedServer(() => {});
    const abort = new AbortController();
    const call = new Sandboxer({ url: server.url }).info({ signal: abort.signal });
    abort.abort(new Error("enough"));
    await expect(call).rejects.toThrow("enough");
  });

  test("ends the wait between two attempts", async () => {
    const abort = new AbortController();
    const server = await scriptedServer((response) => {
      response.writeHead(503, { "retry-after": "60", "content-type": "application/json" });
      response.end(JSON.stringify({ error: { code: "rate_limited" } }));
      setImmediate(() => abort.abort(new Error("enough")));
    });
    await expect(new Sandboxer({ url: server.url }).info({ signal: abort.signal })).rejects.toThrow("enough");
    expect(server.requests).toHaveLength(1);
  });

  test("ends every call of a client", async () => {
    const server = await scriptedServer(() => {});
    const abort = new AbortController();
    const client = new Sandboxer({ url: server.url, signal: abort.signal });
    const calls = [client.info(), client.backends({ signal: AbortSignal.timeout(60_000) })];
    abort.abort(new Error("enough"));
    for (const call of calls) await expect(call).rejects.toThrow("enough");
  });
});

describe("long calls", () => {
  const operation = (fields: object) => ({
    id: "o",
    state: "running",
    phase: "save",
    result: null,
    error: null,
    ...fields,
  });

  test("are followed to their end, with progress", async () => {
    const server = await scriptedServer(
      { status: 202, body: operation({ phase: "begin" }) },
      { status: 200, body: operation({ phase: "write", done_bytes: 5 }) },
      { status: 200, body: operation({ state: "done", result: { id: "x" } }) },
    );
    const phases: unknown[] = [];
    const client = new Sandboxer({ url: server.url });
    const result = await client.call(
      "checkpointSandbox",
      { params: { id: "x" } },
      { onProgress: ({ phase, done_bytes }) => phases.push([phase, done_bytes]) },
    );
    expect(result).toEqual({ id: "x" });
    expect(phases).toEqual([
      ["begin", undefined],
      ["write", 5],
      ["save", undefined],
    ]);
    expect(server.requests[0]?.headers["prefer"]).toBe("respond-async");
    expect(server.requests[1]?.path).toBe("/v1/operations/o?wait=0.5");
  });

  test("that fail, fail with the operation's error", async () => {
    const error = { code: "checkpoint_failed", message: "No.", hint: "Try again." };
    const server = await scriptedServer({ status: 202, body: operation({ state: "failed", error }) });
    const call = new Sandboxer({ url: server.url }).call(
      "checkpointSandbox",
      { params: { id: "x" } },
      { onProgress: () => {} },
    );
    await expect(call).rejects.toMatchObject(error);
  });
});
