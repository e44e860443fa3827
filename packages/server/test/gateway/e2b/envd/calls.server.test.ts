import { expect, test } from "vitest";
import { endFrame, messageFrame } from "../../../../src/gateway/e2b/connect/envelope.ts";
import { eventually } from "../../../../../../test/kit/eventually.ts";
import { startTestServer, type TestServer } from "../../../../../../test/kit/server/test-server.ts";

/** Calls as E2B's Python client sends them, and those that no client of today sends. */
class Envd {
  readonly server: TestServer;
  readonly id: string;
  readonly headers: Record<string, string>;

  private constructor(server: TestServer, id: string) {
    this.server = server;
    this.id = id;
    this.headers = { "e2b-sandbox-id": id, "x-access-token": server.e2bToken(id) };
  }

  static async open(): Promise<Envd> {
    const server = await startTestServer();
    return new Envd(server, (await server.create({ enable_checkpoint: true })).id);
  }

  async call(method: string, message: unknown, headers: Record<string, string> = {}): Promise<unknown[]> {
    const answer = await fetch(`${this.server.httpUrl}/e2b/${method}`, {
      method: "POST",
      headers: { ...this.headers, ...headers, "content-type": "application/json" },
      body: JSON.stringify(message),
    });
    return [answer.status, await answer.json()];
  }

  /** The messages of a stream, to its end. */
  async stream(method: string, sent: readonly unknown[], headers: Record<string, string> = {}): Promise<unknown[]> {
    const answer = await fetch(`${this.server.httpUrl}/e2b/${method}`, {
      method: "POST",
      headers: { ...this.headers, ...headers, "content-type": "application/connect+json" },
      body: Buffer.concat(sent.map(messageFrame)),
    });
    const messages: unknown[] = [];
    const body = Buffer.from(await answer.arrayBuffer());
    for (let at = 0; at < body.length; at += 5 + body.readUInt32BE(at + 1)) {
      messages.push(JSON.parse(body.subarray(at + 5, at + 5 + body.readUInt32BE(at + 1)).toString()));
    }
    return messages;
  }
}

const start = (script: string, more: object = {}): object => ({
  process: { cmd: "/bin/bash", args: ["-l", "-c", script] },
  ...more,
});

test("input comes as a stream of messages, to a process that is found by its tag", async () => {
  const envd = await Envd.open();
  const running = envd.stream("process.Process/Start", [
    start("read x; echo got $x; read y; echo and $y", { tag: "it" }),
  ]);
  await eventually("it runs", async () => JSON.stringify(await envd.call("process.Process/List", {})).includes('"it"'));
  const input = (text: string): object => ({ data: { input: { stdin: Buffer.from(text).toString("base64") } } });
  const sent = [{ start: { process: { tag: "it" } } }, input("a\n"), { keepalive: {} }, input("b\n")];
  expect(await envd.stream("process.Process/StreamInput", sent)).toEqual([{}, {}]);
  const told = JSON.stringify(await running);
  expect(told).toContain(Buffer.from("got a\n").toString("base64"));
  expect(told).toContain('"exitCode":0');
  expect(await envd.stream("process.Process/StreamInput", [input("a\n")])).toMatchObject([
    { error: { code: "invalid_argument" } },
  ]);
});

test("a terminal has one output, a size, and no end of its input", async () => {
  const envd = await Envd.open();
  const size = { cols: 100, rows: 30 };
  const running = envd.stream("process.Process/Start", [start("stty size; read x", { pty: { size }, tag: "tty" })]);
  await eventually("it runs", async () =>
    JSON.stringify(await envd.call("process.Process/List", {})).includes('"tty"'),
  );
  const process = { tag: "tty" };
  const stdin = Buffer.from("x\n").toString("base64");
  expect(await envd.call("process.Process/SendInput", { process, input: { stdin } })).toMatchObject([
    400,
    { code: "failed_precondition" },
  ]);
  expect(await envd.call("process.Process/CloseStdin", { process })).toMatchObject([
    400,
    { code: "failed_precondition" },
  ]);
  expect(await envd.call("process.Process/Update", { process, pty: { size } })).toEqual([200, {}]);
  expect(await envd.call("process.Process/SendSignal", { process, signal: "SIGNAL_SIGHUP" })).toMatchObject([
    501,
    { code: "unimplemented" },
  ]);
  expect(await envd.call("process.Process/SendInput", { process, input: { pty: stdin } })).toEqual([200, {}]);
  expect(JSON.stringify(await running)).toContain(`"pty":"${Buffer.from("30 100").toString("base64").slice(0, 8)}`);
});

test("polled watchers return each event once, survive a pause, and belong to their sandbox", async () => {
  const envd = await Envd.open();
  const [, created] = await envd.call("filesystem.Filesystem/CreateWatcher", {
    path: "/workspace",
    include_entry: true,
  });
  const { watcherId } = created as { watcherId: string };
  await envd.call("filesystem.Filesystem/MakeDir", { path: "a" });
  const [, first] = await envd.call("filesystem.Filesystem/GetWatcherEvents", { watcherId });
  expect(first).toMatchObject({ events: [{ name: "a", type: "EVENT_TYPE_CREATE", entry: { path: "/workspace/a" } }] });
  expect(await envd.call("filesystem.Filesystem/GetWatcherEvents", { watcherId })).toEqual([200, { events: [] }]);
  const live = await envd.server.live(envd.id);
  await envd.server.manager.pause(live);
  await envd.server.manager.resume({ sandboxId: envd.id });
  expect(await envd.call("filesystem.Filesystem/GetWatcherEvents", { watcherId })).toEqual([200, { events: [] }]);
  await envd.call("filesystem.Filesystem/MakeDir", { path: "b" });
  const [, second] = await envd.call("filesystem.Filesystem/GetWatcherEvents", { watcherId });
  expect(second).toMatchObject({ events: [{ name: "b", type: "EVENT_TYPE_CREATE" }] });
  const other = (await envd.server.create()).id;
  const foreign = { "e2b-sandbox-id": other, "x-access-token": envd.server.e2bToken(other) };
  const gone = [404, { code: "not_found", message: expect.any(String) }];
  expect(await envd.call("filesystem.Filesystem/GetWatcherEvents", { watcherId }, foreign)).toEqual(gone);
  expect(await envd.call("filesystem.Filesystem/RemoveWatcher", { watcherId })).toEqual([200, {}]);
  expect(await envd.call("filesystem.Filesystem/GetWatcherEvents", { watcherId })).toEqual(gone);
});

test("bad messages are refused by name, and a stream that is no stream too", async () => {
  const envd = await Envd.open();
  expect(await envd.call("process.Process/SendSignal", { process: { pid: "x" } })).toMatchObject([
    400,
    { code: "invalid_argument" },
  ]);
  expect(await envd.call("process.Process/SendInput", { process: {} })).toMatchObject([
    400,
    { code: "invalid_argument" },
  ]);
  expect(await envd.stream("process.Process/Connect", [{}])).toMatchObject([{ error: { code: "invalid_argument" } }]);
  expect(await envd.call("filesystem.Filesystem/Stat", { path: "~root/x" })).toMatchObject([
    400,
    { code: "invalid_argument" },
  ]);
  const timeout = { "connect-timeout-ms": "soon" };
  expect(await envd.stream("process.Process/Start", [start("true")], timeout)).toMatchObject([
    { error: { code: "invalid_argument" } },
  ]);
  expect(endFrame({ code: "internal", message: "m" }).subarray(5).toString()).toBe(
    '{"error":{"code":"internal","message":"m"}}',
  );
});

test("variables and usage of a sandbox need its token", async () => {
  const envd = await Envd.open();
  const get = async (path: string): Promise<unknown> =>
    (await fetch(`${envd.server.httpUrl}/e2b${path}`, { headers: envd.headers })).json();
  expect(await get("/envs")).toEqual({});
  expect(await get("/metrics")).toMatchObject({ cpu_count: expect.any(Number), mem_used: expect.any(Number) });
});

test("an upload names its invalid part, and ranges of a file can be read", async () => {
  const envd = await Envd.open();
  const url = `${envd.server.httpUrl}/e2b/files`;
  const form = (...names: string[]): FormData => {
    const data = new FormData();
    for (const name of names) data.append("file", new Blob(["0123456789"]), name);
    return data;
  };
  const post = async (query: string, body: FormData): Promise<[number, string]> => {
    const answer = await fetch(url + query, { method: "POST", headers: envd.headers, body });
    return [answer.status, await answer.text()];
  };
  expect((await post("", form("a/one", "a/two")))[1]).toContain("/workspace/a/two");
  expect(await post("", form("a/one", "a/one"))).toMatchObject([400, expect.stringContaining("twice")]);
  expect(await post("", new FormData())).toMatchObject([400, expect.stringContaining("no part")]);
  expect(await post("?path=x&username=nobody-here", form("x"))).toMatchObject([
    401,
    expect.stringContaining("no user"),
  ]);
  const part = await fetch(`${url}?path=a/one`, { headers: { ...envd.headers, range: "bytes=2-4" } });
  expect([part.status, await part.text(), part.headers.get("content-range")]).toEqual([206, "234", "bytes 2-4/10"]);
  const beyond = await fetch(`${url}?path=a/one`, { headers: { ...envd.headers, range: "bytes=10-" } });
  expect(beyond.status).toBe(416);
  const garbled = await fetch(`${url}?path=z`, {
    method: "POST",
    headers: { ...envd.headers, "content-type": "application/octet-stream", "content-encoding": "gzip" },
    body: "not gzip",
  });
  expect([garbled.status, await garbled.json()]).toEqual([400, { code: 400, message: "The body is not valid gzip." }]);
});
