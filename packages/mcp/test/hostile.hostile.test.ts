import { KeyFile } from "../../server/src/gateway/access/key-file.ts";
import { describe, expect, test } from "vitest";
import { startTestServer } from "../../../test/kit/server/test-server.ts";
import { temporaryFolder } from "../../../test/kit/temporary-folder.ts";
import { connect } from "./support/clients.ts";

const ACCEPT = "application/json, text/event-stream";

interface Posted {
  readonly status: number;
  readonly text: string;
  readonly type: string | null;
}

async function post(url: string, body: unknown, headers: Record<string, string> = {}): Promise<Posted> {
  const response = await fetch(`${url}/mcp`, {
    method: "POST",
    headers: { "content-type": "application/json", accept: ACCEPT, ...headers },
    body: typeof body === "string" ? body : JSON.stringify(body),
  });
  return { status: response.status, text: await response.text(), type: response.headers.get("content-type") };
}

const callOf = (name: string, input: unknown) => ({
  jsonrpc: "2.0",
  id: 1,
  method: "tools/call",
  params: { name, arguments: input },
});

async function keyed() {
  const file = new KeyFile(await temporaryFolder());
  const [reader, user] = [
    await file.create({ name: "reader", scope: "read" }),
    await file.create({ name: "user", scope: "use" }),
  ];
  const { httpUrl: url } = await startTestServer({ access: { keyFile: file.path } });
  return { url, reader: reader.text, user: user.text };
}

describe("access to /mcp", () => {
  test("without a key or with a wrong one: 401, before the body is parsed", async () => {
    const { url } = await keyed();
    for (const headers of [{}, { authorization: "Bearer wrong" }]) {
      expect(await post(url, "not json", headers)).toMatchObject({
        status: 401,
        text: expect.stringContaining("unauthorized"),
      });
    }
  });

  test("a malformed encryption key: 400, as at every route", async () => {
    const { httpUrl } = await startTestServer();
    const list = { jsonrpc: "2.0", id: 1, method: "tools/list" };
    expect(await post(httpUrl, list, { "sandboxer-encryption-key": "respond-async" })).toMatchObject({
      status: 400,
      text: expect.stringContaining("32 bytes"),
    });
  });

  test("a foreign Origin: 403, whatever its key; our own is accepted", async () => {
    const { url, user } = await keyed();
    const list = { jsonrpc: "2.0", id: 1, method: "tools/list" };
    const headers = { authorization: `Bearer ${user}` };
    expect(await post(url, list, { ...headers, origin: "https://evil.example" })).toMatchObject({ status: 403 });
    expect(await post(url, list, { ...headers, origin: url })).toMatchObject({ status: 200 });
    const open = await startTestServer();
    expect(await post(open.httpUrl, list, { origin: "https://evil.example" })).toMatchObject({ status: 403 });
    expect(await post(open.httpUrl, list, { "x-forwarded-for": "192.0.2.1" })).toMatchObject({ status: 403 });
  });

  test("a key with the scope read sees sandboxes and runs nothing in them", async () => {
    const { url, reader, user } = await keyed();
    const mine = await connect("2026-07-28", { url, key: user });
    const { sandbox_id } = await mine.done<{ sandbox_id: string }>("sandbox_open");
    const theirs = await connect("2026-07-28", { url, key: reader });
    expect(await theirs.done("sandbox_list")).toMatchObject({ sandboxes: [{ sandbox_id }] });
    for (const [tool, input] of [
      ["run", { sandbox_id, command: "id" }],
      ["file_write", { sandbox_id, path: "/tmp/x", content: "" }],
      ["checkpoint", { sandbox_id }],
      ["fork", { sandbox_id }],
      ["promote", { winner: sandbox_id, into: sandbox_id }],
      ["sandbox_pause", { sandbox_id }],
      ["sandbox_destroy", { sandbox_id }],
      ["sandbox_open", {}],
    ] as const) {
      const { isError, text } = await theirs.call(tool, input);
      expect([tool, isError, text]).toEqual([
        tool,
        true,
        expect.stringContaining("needs the scope use; reader has read"),
      ]);
    }
    expect(await mine.done("sandbox_list")).toMatchObject({ sandboxes: [{ sandbox_id, state: "running" }] });
  });

  test("a sandbox under another client's encryption key stays closed", async () => {
    const { httpUrl: url } = await startTestServer();
    const create = { jsonrpc: "2.0", id: 1, method: "tools/call", params: { name: "sandbox_open", arguments: {} } };
    const key = Buffer.alloc(32, 7).toString("base64");
    const { text } = await post(url, create, { "sandboxer-encryption-key": key });
    const [, sandbox_id = ""] = /sandbox_id\\":\\"([^\\]+)/.exec(text) ?? [];
    const other = await connect("2026-07-28", { url });
    await other.done("sandbox_pause", { sandbox_id });
    expect(await other.call("run", { sandbox_id, command: "id" })).toMatchObject({
      isError: true,
      meta: { "sandboxer/error": { code: "key_required" } },
    });
  });
});

describe("bad requests", () => {
  test("unknown tools and invalid arguments are reported as errors", async () => {
    const { httpUrl: url } = await startTestServer();
    const client = await connect("2026-07-28", { url });
    await expect(client.call("no_such_tool")).rejects.toThrow("no_such_tool");
    for (const input of [
      {},
      { sandbox_id: 7 },
      { sandbox_id: "x".repeat(129), command: "ls" },
      { sandbox_id: "..", command: "ls" },
    ]) {
      expect(await client.call("run", input)).toMatchObject({ isError: true });
    }
    for (const path of ["relative", "/".padEnd(5000, "x")]) {
      expect(await client.call("file_read", { sandbox_id: "x", path })).toMatchObject({ isError: true });
    }
  });

  test("huge and deep arguments are refused, and the server keeps running", async () => {
    const { httpUrl: url } = await startTestServer();
    const huge = callOf("file_write", { sandbox_id: "x", path: "/x", content: "x".repeat(9 * 1024 * 1024) });
    expect(await post(url, huge)).toMatchObject({ status: 413 });
    const long = callOf("file_write", { sandbox_id: "x", path: "/x", content: "x".repeat(4_000_001) });
    expect((await post(url, long)).text).toContain("Too big");
    const deep = `${'{"a":'.repeat(100_000)}1${"}".repeat(100_000)}`;
    const body = `{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{"name":"run","arguments":${deep}}}`;
    expect((await post(url, body)).text).toMatch(/Unrecognized key|Invalid|error/);
    const many = callOf("run", {
      sandbox_id: "x",
      env: Object.fromEntries(Array.from({ length: 50_000 }, (_, i) => [`a${i}`, ""])),
      command: "ls",
    });
    expect((await post(url, many)).text).toContain("isError");
    expect(await post(url, { jsonrpc: "2.0", id: 1, method: "ping" })).toMatchObject({ status: 200 });
  });

  test("a client of an unknown revision gets the supported ones", async () => {
    const { httpUrl: url } = await startTestServer();
    const meta = {
      "io.modelcontextprotocol/protocolVersion": "2099-01-01",
      "io.modelcontextprotocol/clientCapabilities": {},
    };
    const modern = { jsonrpc: "2.0", id: 1, method: "tools/list", params: { _meta: meta } };
    const refused = await post(url, modern, { "mcp-protocol-version": "2099-01-01", "mcp-method": "tools/list" });
    expect(refused).toMatchObject({ status: 400, text: expect.stringContaining("2026-07-28") });
    const initialize = {
      jsonrpc: "2.0",
      id: 1,
      method: "initialize",
      params: { protocolVersion: "2099-01-01", capabilities: {}, clientInfo: { name: "t", version: "1" } },
    };
    expect((await post(url, initialize)).text).toContain('"protocolVersion":"2025-11-25"');
    const old = { jsonrpc: "2.0", id: 1, method: "tools/list" };
    expect(await post(url, old, { "mcp-protocol-version": "1999-01-01" })).toMatchObject({ status: 400 });
  });

  test("invalid bodies are answered in the protocol's form", async () => {
    const { httpUrl: url } = await startTestServer();
    const list = '{"jsonrpc":"2.0","id":1,"method":"tools/list"}';
    for (const [body, headers, status] of [
      ["{", {}, 400],
      ["", {}, 400],
      ["7", {}, 400],
      ["[]", {}, 400],
      [list, { "content-type": "text/plain" }, 415],
      [list, { accept: "text/html" }, 406],
    ] as const) {
      const answer = await post(url, body, headers);
      expect([body, answer.status, answer.text]).toEqual([body, status, expect.stringContaining('"jsonrpc":"2.0"')]);
    }
  });

  test("GET and DELETE, which are for sessions: 405; an unknown set of tools: 400", async () => {
    const { httpUrl: url } = await startTestServer();
    for (const method of ["GET", "DELETE"]) {
      expect((await fetch(`${url}/mcp`, { method, headers: { accept: ACCEPT } })).status).toBe(405);
    }
    const response = await fetch(`${url}/mcp?tools=some`, { method: "POST", body: "{}" });
    expect([response.status, await response.text()]).toEqual([
      400,
      expect.stringContaining("tools must be core or all"),
    ]);
  });
});
