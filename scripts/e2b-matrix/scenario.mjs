/**
 * The calls of the matrix with the npm package `e2b`: `node scenario.mjs FOLDER`, where FOLDER has the package, and maybe
 * `@e2b/code-interpreter`. Prints a line of JSON for each step. The server is named by environment variables alone;
 * `SCENARIO_IMAGE` names an image with a shell that the server can use.
 */
import { existsSync } from "node:fs";
import { request } from "node:http";
import { createRequire } from "node:module";
import { join } from "node:path";
import { setTimeout as delay } from "node:timers/promises";
import { pathToFileURL } from "node:url";

const [, , FOLDER = ""] = process.argv;
const require = createRequire(join(FOLDER, "package.json"));
const { Sandbox, Template, Volume } = await import(pathToFileURL(require.resolve("e2b")).href);

const MINUTE = 60_000;
const PATIENCE_MS = 2 * MINUTE;
/** Its own, for scenarios that run side by side. */
const METADATA = { matrix: `a b=c ${process.pid}` };
/** For programs inside: the only ones that are sure to be there. */
const SERVE = "import http.server as h; h.HTTPServer(('0.0.0.0', 3000), h.SimpleHTTPRequestHandler).serve_forever()";
/** Both streams, a rich result, and a table, which needs no library: a data frame is known by its name and module. */
const RICH = `
import sys
class Rich:
    def __repr__(self): return "rich"
    def _repr_html_(self): return "<b>"
    def _repr_png_(self): return b"p"
    def _repr_json_(self): return {"a": [1]}
class DataFrame:
    __module__ = "pandas"
    columns = ["a"]
    def __repr__(self): return "frame"
    def head(self, _): return self
    def itertuples(self, **_): return [(1,), (None,)]
    def __len__(self): return 2
print("o", flush=True)
print("e", file=sys.stderr, flush=True)
display(Rich())
DataFrame()`;
const RESULTS = [
  ["rich", "<b>", "cA==", { a: [1] }, undefined],
  ["frame", undefined, undefined, undefined, { a: [1, null] }],
];

function same(got, wanted) {
  if (JSON.stringify(got) === JSON.stringify(wanted)) return;
  throw new Error(`got ${JSON.stringify(got)} instead of ${JSON.stringify(wanted)}`);
}

/** A call that this version of the package does not have. */
class Missing extends Error {}
/** The address of a package in the folder; one of a folder above it would have another version of `e2b`. */
function resolved(name) {
  if (!existsSync(join(FOLDER, "node_modules", name))) throw new Missing(name);
  return pathToFileURL(require.resolve(name)).href;
}
function needs(owner, name) {
  if (typeof owner?.[name] !== "function") throw new Missing(name);
}

async function eventually(isSo) {
  const endMs = Date.now() + PATIENCE_MS;
  while (!(await isSo())) {
    if (Date.now() > endMs) throw new Error("it did not happen");
    await delay(100);
  }
}

async function failure(promise) {
  return await promise.then(
    () => {
      throw new Error("the call should have failed");
    },
    (error) => error,
  );
}

/** The status and text of a port, whose name may not be known to this machine. */
async function visit(host, headers = {}) {
  if (process.env.E2B_DOMAIN !== undefined) {
    const answer = await fetch(`https://${host}/kept.txt`, { headers });
    return [answer.status, await answer.text()];
  }
  const { hostname, port } = new URL(process.env.E2B_SANDBOX_URL);
  const { promise, resolve, reject } = Promise.withResolvers();
  request({ hostname, port, path: "/kept.txt", headers: { host, ...headers } }, resolve)
    .on("error", reject)
    .end();
  const answer = await promise;
  return [answer.statusCode, Buffer.concat(await Array.fromAsync(answer)).toString()];
}

async function stateOf(sandboxId) {
  return await Sandbox.getInfo(sandboxId).then(
    ({ state }) => state,
    (error) => (error.name.includes("NotFound") ? "missing" : Promise.reject(error)),
  );
}

const made = [];
async function created(...given) {
  const sandbox = await Sandbox.create(...given);
  made.push(sandbox.sandboxId);
  return sandbox;
}

let sandbox;
const STEPS = {
  "create, getInfo, isRunning": async () => {
    sandbox = await created({ metadata: METADATA, envs: { GREETING: "hello" }, timeoutMs: 5 * MINUTE });
    const { metadata, state } = await sandbox.getInfo();
    same({ metadata, state }, { metadata: METADATA, state: "running" });
    same(await sandbox.isRunning(), true);
  },
  "list with filters and pages": async () => {
    const query = { metadata: METADATA, state: ["running"] };
    const second = await created({ metadata: METADATA });
    const ids = [];
    for (const pages = Sandbox.list({ query, limit: 1 }); pages.hasNext;) {
      const items = await pages.nextItems();
      same(items.length <= 1, true);
      ids.push(...items.map((item) => item.sandboxId));
    }
    same(ids, [second.sandboxId, sandbox.sandboxId]);
    await second.kill();
  },
  "commands.run": async () => {
    const streamed = { out: "", err: "" };
    const { stdout } = await sandbox.commands.run("echo $GREETING$OWN; pwd; whoami; echo wrong >&2", {
      envs: { OWN: "!" },
      onStdout: (text) => void (streamed.out += text),
      onStderr: (text) => void (streamed.err += text),
    });
    same(stdout, "hello!\n/home/user\nuser\n");
    same(streamed, { out: stdout, err: "wrong\n" });
    same((await sandbox.commands.run("pwd", { cwd: "/tmp" })).stdout, "/tmp\n");
    same((await failure(sandbox.commands.run("exit 3"))).exitCode, 3);
    same((await failure(sandbox.commands.run("sleep 60", { timeoutMs: 1_000 }))).name, "TimeoutError");
  },
  "commands as root": async () => {
    same((await sandbox.commands.run("whoami; pwd", { user: "root" })).stdout, "root\n/root\n");
  },
  "commands in the background, stdin, reconnect": async () => {
    const command = await sandbox.commands.run("while read x; do echo got $x; done", { background: true, stdin: true });
    await sandbox.commands.sendStdin(command.pid, "words\n");
    await eventually(() => command.stdout === "got words\n");
    await command.disconnect();
    const again = await sandbox.commands.connect(command.pid);
    await sandbox.commands.sendStdin(command.pid, "more\n");
    await eventually(() => again.stdout === "got more\n");
    same(
      (await sandbox.commands.list()).some(({ pid }) => pid === command.pid),
      true,
    );
    if (typeof sandbox.commands.closeStdin === "function") await sandbox.commands.closeStdin(command.pid);
    else await again.kill();
    const sleeper = await sandbox.commands.run("sleep 1000", { background: true });
    same(await sandbox.commands.kill(sleeper.pid), true);
    // A killed process needs a moment to end.
    await eventually(async () => !(await sandbox.commands.kill(sleeper.pid)));
  },
  files: async () => {
    await sandbox.files.write("folder/hello.txt", "hello");
    same(await sandbox.files.read("/home/user/folder/hello.txt"), "hello");
    same(
      (await sandbox.files.list("folder")).map((entry) => entry.name),
      ["hello.txt"],
    );
    await sandbox.files.rename("folder/hello.txt", "folder/other.txt");
    same(await sandbox.files.exists("folder/hello.txt"), false);
    const written = await sandbox.files.write([
      { path: "folder/deep/one", data: "1" },
      { path: "folder/deep/two", data: "2" },
    ]);
    same(
      written.map(({ path }) => path),
      ["/home/user/folder/deep/one", "/home/user/folder/deep/two"],
    );
    same((await sandbox.files.list("folder", { depth: 2 })).length, 4);
    const { type, permissions, owner, size } = await sandbox.files.getInfo("folder/deep/one");
    same([type, permissions, owner, size], ["file", "-rw-r--r--", "user", 1]);
    await sandbox.files.remove("folder");
    same((await failure(sandbox.files.read("folder/other.txt"))).name.includes("NotFound"), true);
  },
  "metadata of files": async () => {
    await sandbox.files.write("noted", "1", { metadata: { Origin: "a test" } });
    const { metadata } = await sandbox.files.getInfo("noted");
    if (metadata === undefined) throw new Missing("metadata");
    same(metadata, { origin: "a test" });
  },
  "git helpers": async () => {
    needs(sandbox.git, "init");
    await sandbox.git.init("project", { initialBranch: "main" });
    await sandbox.git.configureUser("A", "a@b.c", { scope: "local", path: "project" });
    await sandbox.files.write("project/a", "1");
    await sandbox.git.add("project");
    await sandbox.git.commit("project", "first");
    await sandbox.git.createBranch("project", "other");
    const { currentBranch } = await sandbox.git.branches("project");
    same([currentBranch, (await sandbox.git.status("project")).isClean], ["other", true]);
    await sandbox.git.clone("/home/user/project", { path: "copy" });
    same(await sandbox.files.read("copy/a"), "1");
  },
  "files.watchDir": async () => {
    await sandbox.files.makeDir("watched");
    const seen = Promise.withResolvers();
    const handle = await sandbox.files.watchDir("watched", (event) => seen.resolve(event.name));
    await sandbox.files.write("watched/new.txt", "new");
    same(await seen.promise, "new.txt");
    await handle.stop();
  },
  "pty.create": async () => {
    const seen = Promise.withResolvers();
    let text = "";
    const onData = (data) => {
      text += new TextDecoder().decode(data);
      if (text.includes("3 terminals")) seen.resolve();
    };
    const terminal = await sandbox.pty.create({ cols: 80, rows: 24, onData });
    await sandbox.pty.sendInput(terminal.pid, new TextEncoder().encode("echo $((1+2)) terminals\n"));
    await seen.promise;
    await sandbox.pty.resize(terminal.pid, { cols: 100, rows: 30 });
    await sandbox.pty.sendInput(terminal.pid, new TextEncoder().encode("stty size\n"));
    await eventually(() => text.includes("30 100"));
    await sandbox.pty.kill(terminal.pid);
  },
  "downloadUrl, uploadUrl": async () => {
    needs(sandbox, "downloadUrl");
    await sandbox.files.write("signed.txt", "signed");
    const url = await sandbox.downloadUrl("signed.txt");
    same(await (await fetch(url)).text(), "signed");
    const form = new FormData();
    form.append("file", new Blob(["uploaded"]), "uploaded.txt");
    const upload = await fetch(await sandbox.uploadUrl("uploaded.txt"), { method: "POST", body: form });
    same(upload.status, 200);
    same(await sandbox.files.read("uploaded.txt"), "uploaded");
    const expired = await sandbox.downloadUrl("signed.txt", { useSignatureExpiration: -10 });
    same((await fetch(expired)).status, 401);
  },
  setTimeout: async () => {
    await sandbox.setTimeout(10 * MINUTE);
    const { endAt } = await sandbox.getInfo();
    same(endAt.getTime() > Date.now() + 9 * MINUTE, true);
  },
  "a timeout that deletes": async () => {
    // Longer than a busy machine needs to answer.
    const short = await created({ timeoutMs: 8_000 });
    await eventually(async () => (await stateOf(short.sandboxId)) === "missing");
    same(await short.isRunning(), false);
  },
  "auto-pause, auto-resume": async () => {
    const lifecycle = (autoResume) => ({ lifecycle: { onTimeout: "pause", autoResume } });
    const [plain, automatic] = [await created(lifecycle(false)), await created(lifecycle(true))];
    for (const each of [plain, automatic]) {
      await each.setTimeout(0);
      await eventually(async () => (await stateOf(each.sandboxId)) === "paused");
    }
    same(await plain.isRunning(), false);
    same((await automatic.commands.run("echo awake")).stdout, "awake\n");
    same([await stateOf(plain.sandboxId), await stateOf(automatic.sandboxId)], ["paused", "running"]);
    await plain.connect();
    same((await plain.commands.run("echo awake")).stdout, "awake\n");
    for (const each of [plain, automatic]) await each.kill();
  },
  "auto-pause without memory": async () => {
    const lifecycle = { onTimeout: { action: "pause", keepMemory: false } };
    const plain = await created({ lifecycle });
    if ((await plain.getInfo()).lifecycle?.onTimeout !== "pause") throw new Missing("keepMemory");
    await plain.files.write("kept.txt", "kept");
    const sleeper = await plain.commands.run("sleep 1000", { background: true });
    await plain.setTimeout(0);
    await eventually(async () => (await stateOf(plain.sandboxId)) === "paused");
    await plain.connect();
    same(await plain.files.read("kept.txt"), "kept");
    same(await plain.commands.kill(sleeper.pid), false);
    await plain.kill();
  },
  getMetrics: async () => {
    needs(sandbox, "getMetrics");
    await eventually(async () => (await sandbox.getMetrics()).length > 0);
    const { memUsed, memTotal, cpuCount } = (await sandbox.getMetrics()).at(-1);
    same(memUsed > 0 && memTotal > memUsed && cpuCount > 0, true);
  },
  "getHost, allowPublicTraffic": async () => {
    const closed = await created({ network: { allowPublicTraffic: false } });
    for (const each of [sandbox, closed]) {
      await each.files.write("kept.txt", "kept");
      await each.commands.run(`python3 -c "${SERVE}"`, { background: true, timeoutMs: 0 });
    }
    await eventually(async () => (await visit(sandbox.getHost(3000)))[0] === 200);
    same(await visit(sandbox.getHost(3000)), [200, "kept"]);
    same((await visit(closed.getHost(3000)))[0] === 200, false);
    const headers = { "e2b-traffic-access-token": closed.trafficAccessToken };
    await eventually(async () => (await visit(closed.getHost(3000), headers))[0] === 200);
    await closed.kill();
  },
  "pause, connect": async () => {
    const pause = sandbox.pause ?? sandbox.betaPause;
    await sandbox.files.write("kept.txt", "kept");
    const sleeper = await sandbox.commands.run("sleep 1000", { background: true });
    await pause.call(sandbox);
    same(await sandbox.isRunning(), false);
    sandbox = await Sandbox.connect(sandbox.sandboxId, { timeoutMs: 5 * MINUTE });
    same(await sandbox.files.read("kept.txt"), "kept");
    same((await sandbox.commands.run(`kill -0 ${sleeper.pid}`)).exitCode, 0);
  },
  "pause without memory": async () => {
    needs(sandbox, "fork");
    const boot = async () => (await sandbox.commands.run("cat /proc/sys/kernel/random/boot_id")).stdout;
    const before = await boot();
    await sandbox.pause({ keepMemory: false });
    await sandbox.connect({ timeoutMs: 5 * MINUTE });
    same((await boot()) === before, false);
    same(await sandbox.files.read("kept.txt"), "kept");
  },
  fork: async () => {
    needs(sandbox, "fork");
    const forks = await sandbox.fork({ timeoutMs: MINUTE, count: 2 });
    made.push(...forks.map(({ sandboxId }) => sandboxId));
    for (const fork of forks) same(await fork.files.read("kept.txt"), "kept");
    same(new Set([sandbox, ...forks].map(({ sandboxId }) => sandboxId)).size, 3);
  },
  "snapshots as templates": async () => {
    needs(sandbox, "createSnapshot");
    const { snapshotId } = await sandbox.createSnapshot();
    const listed = await Sandbox.listSnapshots({ sandboxId: sandbox.sandboxId }).nextItems();
    same(
      listed.map((each) => each.snapshotId),
      [snapshotId],
    );
    const copy = await created(snapshotId, { envs: { OWN: "its own" } });
    same(await copy.files.read("kept.txt"), "kept");
    same((await copy.commands.run("echo $OWN")).stdout, "its own\n");
    await copy.kill();
    same(await Sandbox.deleteSnapshot(snapshotId), true);
    same(await Sandbox.deleteSnapshot(snapshotId), false);
  },
  "images as templates": async () => {
    if (process.env.SCENARIO_IMAGE === undefined) throw new Missing("an image");
    const other = await created(process.env.SCENARIO_IMAGE);
    same((await other.commands.run("echo inside; pwd; whoami")).stdout, "inside\n/home/user\nuser\n");
    await other.files.write("a", "1");
    same(await other.files.read("/home/user/a"), "1");
    await other.kill();
  },
  "network options": async () => {
    needs(sandbox, "updateNetwork");
    await sandbox.updateNetwork({ denyOut: ["0.0.0.0/0"], allowOut: ["example.com"] });
    const { network } = await sandbox.getInfo();
    same([network.allowOut, network.denyOut], [["example.com"], ["0.0.0.0/0"]]);
    same(
      (await failure(sandbox.updateNetwork({ rules: { "a.b": [{ transform: {} }] } }))).message.includes("501"),
      true,
    );
    const closed = await created({ allowInternetAccess: false });
    same((await closed.getInfo()).allowInternetAccess, false);
    await closed.kill();
  },
  "Template.exists": async () => {
    needs(Template, "exists");
    same([await Template.exists("base"), await Template.exists("no-such-template")], [true, false]);
  },
  "501 for builds and volumes": async () => {
    const building = Template.build(Template().fromBaseImage().runCmd("true"), "mine", { alias: "mine" });
    same(/501/.test((await failure(building)).message), true);
    needs(Volume, "create");
    same(/501/.test((await failure(Volume.create("mine"))).message), true);
  },
  "code interpreter": async () => {
    const path = resolved("@e2b/code-interpreter");
    const { Sandbox: Interpreter } = await import(path);
    const own = await Interpreter.create();
    made.push(own.sandboxId);
    await own.runCode("x = 20");
    const run = await own.runCode("print('out')\nx + 1");
    same([run.text, run.logs.stdout], ["21", ["out\n"]]);
    same((await own.runCode("1 / 0")).error.name, "ZeroDivisionError");
    const context = await own.createCodeContext({ cwd: "/tmp" });
    same((await own.runCode("import os; os.getcwd()", { context })).text, "/tmp");
    same((await own.runCode("x", { context })).error.name, "NameError");
    same((await own.runCode("echo $((40 + 2))", { language: "bash" })).logs.stdout, ["42\n"]);
    await own.pause();
    await own.connect();
    same((await own.runCode("x")).text, "20");
    await own.kill();
  },
  "code interpreter: results, callbacks, contexts": async () => {
    const { Sandbox: Interpreter } = await import(resolved("@e2b/code-interpreter"));
    const own = await Interpreter.create();
    made.push(own.sandboxId);
    const seen = [];
    const callbacks = {
      onStdout: ({ line }) => seen.push(["out", line]),
      onStderr: ({ line }) => seen.push(["err", line]),
      onResult: (result) => seen.push([result.text, result.html, result.png, result.json, result.data]),
      onError: ({ name }) => seen.push([name]),
    };
    const { executionCount, results } = await own.runCode(RICH, callbacks);
    same([executionCount, results.map(({ isMainResult }) => isMainResult)], [1, [false, true]]);
    same(seen.splice(0, 2).toSorted(), [
      ["err", "e\n"],
      ["out", "o\n"],
    ]);
    same(seen, RESULTS);
    await own.runCode("1 / 0", callbacks);
    same(seen.at(-1), ["ZeroDivisionError"]);
    same((await own.runCode("const y = 6; y * 7", { language: "javascript" })).text, "42");
    const context = await own.createCodeContext({ language: "python", cwd: "/tmp" });
    await own.runCode("z = 1", { context });
    const ids = async () => (await own.listCodeContexts()).map(({ id }) => id);
    same((await ids()).includes(context.id), true);
    await failure(own.runCode("while True: pass", { context, timeoutMs: 1_000 }));
    // The client's departure has interrupted the cell, and nothing else.
    same((await own.runCode("z", { context })).text, "1");
    await own.restartCodeContext(context);
    same((await own.runCode("z", { context })).error.name, "NameError");
    await own.removeCodeContext(context);
    same((await ids()).includes(context.id), false);
    await own.kill();
  },
  kill: async () => {
    same(await sandbox.kill(), true);
    same(await Sandbox.kill(sandbox.sandboxId), false);
  },
};

for (const [step, run] of Object.entries(STEPS)) {
  try {
    await run();
    report({ step, result: "ok" });
  } catch (error) {
    if (error instanceof Missing) report({ step, result: "missing" });
    else report({ step, result: "failed", message: String(error?.message ?? error).slice(0, 300) });
  }
}
for (const id of made) await Sandbox.kill(id).catch(() => {});
process.exit(0);

function report(line) {
  process.stdout.write(`${JSON.stringify(line)}\n`);
}
