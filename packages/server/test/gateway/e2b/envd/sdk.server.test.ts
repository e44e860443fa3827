import { once } from "node:events";
import { type IncomingMessage, request } from "node:http";
import { setImmediate } from "node:timers/promises";
import { Sandbox } from "e2b";
import { expect, onTestFinished, test, vi } from "vitest";
import { startTestServer, type TestServer } from "../../../../../../test/kit/server/test-server.ts";
import { eventually } from "../../../../../../test/kit/eventually.ts";
import { meanwhile } from "../../../../../../test/kit/meanwhile.ts";

interface Opened {
  readonly server: TestServer;
  readonly id: string;
  readonly sandbox: Sandbox;
}

const VERSION = "0.6.4";

async function open(): Promise<Opened> {
  const server = await startTestServer();
  const { id } = await server.create();
  return { server, id, sandbox: sandboxOf(server, id) };
}

function sandboxOf({ httpUrl, e2bToken }: TestServer, sandboxId: string, token = e2bToken(sandboxId)): Sandbox {
  return new Sandbox({
    sandboxId,
    envdVersion: VERSION,
    envdAccessToken: token,
    apiKey: "e2b_00",
    apiUrl: `${httpUrl}/e2b`,
    sandboxUrl: `${httpUrl}/e2b`,
  });
}

test("commands stream both outputs and their exit", async () => {
  const { sandbox } = await open();
  const out: string[] = [];
  const result = await sandbox.commands.run("echo out; echo err >&2", { onStdout: (text) => void out.push(text) });
  expect(result).toMatchObject({ exitCode: 0, stdout: "out\n", stderr: "err\n" });
  expect(out.join("")).toBe("out\n");
  await expect(sandbox.commands.run("exit 3")).rejects.toMatchObject({ exitCode: 3 });
  const given = await sandbox.commands.run("printenv X; pwd", { envs: { X: "1" }, cwd: "/tmp" });
  expect(given.stdout).toBe("1\n/tmp\n");
  await expect(sandbox.commands.run("true", { cwd: "/missing" })).rejects.toThrow("cwd '/missing' does not exist");
  await expect(sandbox.commands.run("true", { user: "nobody-here" })).rejects.toThrow("no user");
});

test("each reader of a process gets its output from the moment it attached", async () => {
  const { sandbox } = await open();
  const process = await sandbox.commands.run("while read x; do echo got $x; done", { background: true, stdin: true });
  const other = await sandbox.commands.connect(process.pid);
  expect((await sandbox.commands.list()).map(({ pid, cmd }) => [pid, cmd])).toEqual([[process.pid, "/bin/bash"]]);
  await sandbox.commands.sendStdin(process.pid, "a\n");
  await eventually("both readers", () => process.stdout === "got a\n" && other.stdout === "got a\n");
  await other.disconnect();
  await sandbox.commands.sendStdin(process.pid, "b\n");
  await sandbox.commands.closeStdin(process.pid);
  expect(await process.wait()).toMatchObject({ exitCode: 0, stdout: "got a\ngot b\n" });
  expect(other.stdout).toBe("got a\n");
  expect(await sandbox.commands.list()).toEqual([]);
  // Its end is still reported for a moment.
  expect(await (await sandbox.commands.connect(process.pid)).wait()).toMatchObject({ exitCode: 0, stdout: "" });
  expect(await sandbox.commands.kill(process.pid)).toBe(false);
});

test("a killed process, and one that timed out, are reported as such", async () => {
  const { sandbox } = await open();
  const process = await sandbox.commands.run("sleep 1000", { background: true });
  expect(await sandbox.commands.kill(process.pid)).toBe(true);
  await expect(process.wait()).rejects.toThrow("killed");
  await expect(sandbox.commands.run("sleep 1000", { timeoutMs: 300 })).rejects.toThrow("timed out");
});

test("a program without stdin sees its end at once", async () => {
  const { sandbox } = await open();
  expect((await sandbox.commands.run("cat; echo end")).stdout).toBe("end\n");
});

test("files are written, described, listed, moved and removed", async () => {
  const { sandbox } = await open();
  const { files } = sandbox;
  expect(await files.write("notes/a.txt", "hello")).toMatchObject({ name: "a.txt", path: "/workspace/notes/a.txt" });
  expect(await files.read("~/notes/a.txt")).toBe("hello");
  expect(await files.read("notes/a.txt", { format: "bytes" })).toEqual(new TextEncoder().encode("hello"));
  expect(await files.getInfo("notes/a.txt")).toMatchObject({
    type: "file",
    size: 5,
    permissions: "-rw-r--r--",
    owner: "user",
    group: "user",
  });
  await files.write([
    { path: "notes/b.txt", data: "b" },
    { path: "notes/deep/c.txt", data: new Blob(["c"]) },
  ]);
  expect((await files.list("notes", { depth: 2 })).map(({ path }) => path)).toEqual([
    "/workspace/notes/a.txt",
    "/workspace/notes/b.txt",
    "/workspace/notes/deep",
    "/workspace/notes/deep/c.txt",
  ]);
  expect(await files.makeDir("notes/deep")).toBe(false);
  expect(await files.makeDir("more/folders")).toBe(true);
  expect((await files.rename("notes/b.txt", "other/b.txt")).path).toBe("/workspace/other/b.txt");
  await files.remove("notes");
  await files.remove("notes");
  expect(await files.exists("notes/a.txt")).toBe(false);
  await expect(files.read("notes/a.txt")).rejects.toThrow("No such file");
  await expect(files.read("more")).rejects.toThrow("is a folder");
  await expect(files.list("other/b.txt")).rejects.toThrow("not a folder");
  await expect(files.makeDir("other/b.txt")).rejects.toThrow("not a folder");
});

test("an empty file, gzip in both directions and large content arrive unchanged", async () => {
  const { sandbox } = await open();
  const { files } = sandbox;
  await files.write("empty", "");
  expect(await files.read("empty")).toBe("");
  const text = "0123456789".repeat(300_000);
  await files.write("large", text, { gzip: true });
  expect(await files.read("large", { gzip: true })).toBe(text);
  const stream = await files.read("large", { format: "stream" });
  expect((await new Response(stream).text()).length).toBe(text.length);
});

test("metadata stays with a file until the next upload", async () => {
  const { sandbox } = await open();
  const { files } = sandbox;
  await files.write("a", "1", { metadata: { Team: "x y" } });
  expect((await files.getInfo("a")).metadata).toEqual({ team: "x y" });
  await files.write("a", "2");
  expect((await files.getInfo("a")).metadata).toBeUndefined();
});

test("changes of a folder are reported, also below it and with the files", async () => {
  const { sandbox } = await open();
  const { files } = sandbox;
  await files.makeDir("watched/inner");
  const events: [string, string, number | undefined][] = [];
  const watch = await files.watchDir(
    "watched",
    (event) => void events.push([event.type, event.name, event.entry?.size]),
    {
      recursive: true,
      includeEntry: true,
    },
  );
  await files.write("watched/inner/a", "hello");
  await files.makeDir("watched/new/deep");
  await files.write("watched/new/deep/b", "x");
  await files.rename("watched/inner/a", "watched/c");
  await files.remove("watched/c");
  await eventually("the removal", () => events.some(([type, name]) => type === "remove" && name === "c"));
  const told = events.map(([type, name]) => `${type} ${name}`);
  expect(told).toEqual(
    expect.arrayContaining(["create inner/a", "write inner/a", "create new", "create new/deep/b", "rename inner/a"]),
  );
  expect(events.find(([type, name]) => type === "write" && name === "inner/a")?.[2]).toBe(5);
  await watch.stop();
  await expect(files.watchDir("missing", () => {})).rejects.toThrow("No such file");
});

test("a watch ends with an error when its folder vanishes", async () => {
  const { sandbox } = await open();
  await sandbox.files.makeDir("watched");
  const ended = Promise.withResolvers<Error | undefined>();
  await sandbox.files.watchDir("watched", () => {}, { onExit: (error) => ended.resolve(error) });
  await sandbox.files.remove("watched");
  expect((await ended.promise)?.message).toContain("deleted or moved");
});

test("an upload of a million parts is refused while it is sent, and leaves the server working", async () => {
  const { server, id, sandbox } = await open();
  const upload = request(`${server.httpUrl}/e2b/files`, {
    method: "POST",
    headers: {
      "e2b-sandbox-id": id,
      "x-access-token": server.e2bToken(id),
      "content-type": "multipart/form-data; boundary=b",
    },
  });
  const answered = once(upload, "response") as Promise<[IncomingMessage]>;
  // The server may close the connection before it has read everything.
  upload.on("error", () => {});
  let sent = 0;
  const isRefused = answered.then(() => true);
  for (; sent < 1_000_000; sent += 100) {
    const numbers = Array.from({ length: 100 }, (_, index) => sent + index);
    const part = (name: number): string =>
      `--b\r\nContent-Disposition: form-data; name="file"; filename="many/${name}"\r\n\r\n\r\n`;
    if (upload.destroyed || (await Promise.race([isRefused, setImmediate(false)]))) break;
    upload.write(numbers.map(part).join(""));
  }
  const [answer] = await answered;
  const body = Buffer.concat(await Array.fromAsync(answer)).toString();
  expect([answer.statusCode, body]).toEqual([400, expect.stringContaining("at most 1000 files")]);
  expect(sent).toBeLessThan(1_000_000);
  expect((await sandbox.commands.run("echo still here")).stdout).toBe("still here\n");
});

test("signed URLs work without headers, and only for their sandbox, file and time", async () => {
  const { server, sandbox } = await open();
  const other = await server.create();
  await sandbox.files.write("a.txt", "hello");
  const url = await sandbox.downloadUrl("a.txt");
  expect(new URL(url).pathname).toBe("/files");
  expect(await (await fetch(url)).text()).toBe("hello");
  const form = new FormData();
  form.append("file", new Blob(["new"]), "ignored");
  const upload = await fetch(await sandbox.uploadUrl("a.txt"), { method: "POST", body: form });
  expect(await upload.json()).toMatchObject([{ name: "a.txt", path: "/workspace/a.txt", type: "file" }]);
  expect(await sandbox.files.read("a.txt")).toBe("new");
  const refused = async (changed: string, message: string, init?: RequestInit): Promise<void> => {
    const answer = await fetch(changed, init);
    expect([answer.status, await answer.json()]).toEqual([401, { code: 401, message }]);
  };
  await refused(url.replace("a.txt", "b.txt"), "invalid signature");
  await refused(url.replace("a.txt", "..%2Fa.txt"), "invalid signature");
  await refused(url, "invalid signature", { method: "POST", body: form });
  const named = url.replace("/files?", "/e2b/files?");
  await refused(named, "invalid signature", { headers: { "E2b-Sandbox-Id": other.id } });
  const expired = await sandbox.downloadUrl("a.txt", { useSignatureExpiration: -10 });
  await refused(expired, "signature is already expired");
});

test("a command's first output is kept, however late its reader attaches", async () => {
  const { server, sandbox } = await open();
  const { processes } = server.manager;
  const start = processes.start.bind(processes);
  vi.spyOn(processes, "start").mockImplementation(async (sandboxGiven, request) => {
    const process = await start(sandboxGiven, request);
    await Promise.race([process.exited, meanwhile(1_000)]);
    return process;
  });
  const { stdout } = await sandbox.commands.run("yes 0123456 | head -c 3000000");
  expect(stdout).toHaveLength(3_000_000);
});

test("many downloads over one connection leave no listeners on it", async () => {
  const { server, sandbox } = await open();
  await sandbox.files.write("a.txt", "hello");
  const url = await sandbox.downloadUrl("a.txt");
  for (let read = 0; read < 20; read += 1) expect(await (await fetch(url)).text()).toBe("hello");
  for (const socket of server.sockets) expect(socket.listenerCount("close")).toBeLessThan(10);
});

test("wrong signatures for no named sandbox are limited, and a sandbox's own URL still works by name", async () => {
  const { sandbox, id } = await open();
  await sandbox.files.write("a.txt", "hello");
  const url = await sandbox.downloadUrl("a.txt");
  const wrong = url.replace("a.txt", "b.txt");
  const statuses = new Set<number>();
  for (let tried = 0; tried < 12; tried += 1) statuses.add((await fetch(wrong)).status);
  expect([...statuses]).toEqual([401, 429]);
  const named = await fetch(url.replace("/files?", "/e2b/files?"), { headers: { "E2b-Sandbox-Id": id } });
  expect(await named.text()).toBe("hello");
});

test("every route refuses foreign and malformed tokens", async () => {
  const { server, id } = await open();
  const { id: other } = await server.create();
  const rpc = "Start Connect List SendInput StreamInput SendSignal CloseStdin Update".split(" ");
  const filesystem = "Stat ListDir MakeDir Move Remove WatchDir CreateWatcher GetWatcherEvents RemoveWatcher".split(
    " ",
  );
  const routes = [
    ...rpc.map((method) => ["POST", `/process.Process/${method}`] as const),
    ...filesystem.map((method) => ["POST", `/filesystem.Filesystem/${method}`] as const),
    ["GET", "/files?path=a"] as const,
    ["POST", "/files?path=a"] as const,
    ["GET", "/metrics"] as const,
    ["GET", "/envs"] as const,
  ];
  const streams = new Set(["Start", "Connect", "StreamInput", "WatchDir"]);
  for (const token of [undefined, "", "rubbish", server.e2bToken(other), server.e2bToken(id).slice(1)]) {
    for (const [method, path] of routes) {
      const isStream = streams.has(path.split("/").at(-1) ?? "");
      const type = path.startsWith("/files")
        ? "application/octet-stream"
        : isStream
          ? "application/connect+json"
          : "application/json";
      const body = isStream ? Buffer.from([0, 0, 0, 0, 2, 0x7b, 0x7d]) : "{}";
      const answer = await fetch(`${server.httpUrl}/e2b${path}`, {
        method,
        headers: {
          "e2b-sandbox-id": id,
          "content-type": type,
          ...(token === undefined ? {} : { "x-access-token": token }),
        },
        ...(method === "POST" ? { body } : {}),
      });
      expect([path, token, answer.status]).toEqual([path, token, 401]);
      expect(await answer.json()).toMatchObject({ code: 401 });
    }
  }
});

test("a sandbox that is deleted cuts its streams, and its files are not found", async () => {
  const { server, id, sandbox } = await open();
  const process = await sandbox.commands.run("sleep 1000", { background: true });
  const waiting = process.wait();
  waiting.catch(() => {});
  await server.manager.destroyById(id, undefined);
  await expect(waiting).rejects.toThrow();
  expect(await sandbox.isRunning()).toBe(false);
  await expect(sandbox.files.list("/")).rejects.toThrow();
});

test("truncated, huge or compressed frames are refused, and the server keeps running", async () => {
  const { server, id, sandbox } = await open();
  const send = async (body: Buffer, headers: Record<string, string> = {}): Promise<string> => {
    const answer = await fetch(`${server.httpUrl}/e2b/process.Process/Start`, {
      method: "POST",
      headers: {
        "e2b-sandbox-id": id,
        "x-access-token": server.e2bToken(id),
        "content-type": "application/connect+json",
        ...headers,
      },
      body,
    });
    expect(answer.status).toBe(200);
    return Buffer.from(await answer.arrayBuffer())
      .subarray(5)
      .toString();
  };
  expect(await send(Buffer.from([0, 0, 0]))).toContain("invalid_argument");
  expect(await send(Buffer.from([0, 0xff, 0xff, 0xff, 0xff, 0x7b]))).toContain("resource_exhausted");
  expect(await send(Buffer.from([1, 0, 0, 0, 2, 0x7b, 0x7d]))).toContain("unimplemented");
  expect(await send(Buffer.from([0, 0, 0, 0, 2, 0x7b, 0x7d]))).toContain("no command");
  expect(await send(Buffer.from([0, 0, 0, 0, 2, 0x5b, 0x5d]))).toContain("invalid_argument");
  expect(await send(Buffer.alloc(0), { "connect-content-encoding": "gzip" })).toContain("unimplemented");
  expect((await sandbox.commands.run("echo still here")).stdout).toBe("still here\n");
  onTestFinished(() => expect(server.problems).toEqual([]));
});
