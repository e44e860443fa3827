/**
 * The calls of the matrix with the npm package `e2b`: `node scenario.mjs FOLDER`, where FOLDER has the package. Prints a
 * line of JSON for each step. The server is named by environment variables alone.
 */
import { createRequire } from "node:module";
import { join } from "node:path";
import { pathToFileURL } from "node:url";

const require = createRequire(join(process.argv[2] ?? "", "package.json"));
const { Sandbox, Template } = await import(pathToFileURL(require.resolve("e2b")).href);

const MINUTE = 60_000;

function same(got, wanted) {
  if (JSON.stringify(got) === JSON.stringify(wanted)) return;
  throw new Error(`got ${JSON.stringify(got)} instead of ${JSON.stringify(wanted)}`);
}

/** A call that this version of the package does not have. */
class Missing extends Error {}
function needs(owner, name) {
  if (typeof owner?.[name] !== "function") throw new Missing(name);
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
    sandbox = await created({ metadata: { matrix: "a b=c" }, envs: { GREETING: "hello" }, timeoutMs: 5 * MINUTE });
    const { metadata, state } = await sandbox.getInfo();
    same({ metadata, state }, { metadata: { matrix: "a b=c" }, state: "running" });
    same(await sandbox.isRunning(), true);
  },
  "list with filters": async () => {
    const items = await Sandbox.list({ query: { metadata: { matrix: "a b=c" }, state: ["running"] } }).nextItems();
    same(
      items.map((item) => item.sandboxId),
      [sandbox.sandboxId],
    );
  },
  "commands.run": async () => {
    const { stdout } = await sandbox.commands.run("echo $GREETING; pwd; whoami");
    same(stdout, "hello\n/home/user\nuser\n");
    const failure = await sandbox.commands.run("exit 3").catch((error) => error);
    same(failure.exitCode, 3);
  },
  "commands as root": async () => {
    same((await sandbox.commands.run("whoami", { user: "root" })).stdout, "root\n");
  },
  "commands in the background, stdin": async () => {
    const command = await sandbox.commands.run("read line; echo got $line", { background: true, stdin: true });
    await sandbox.commands.sendStdin(command.pid, "words\n");
    same((await command.wait()).stdout, "got words\n");
    const sleeper = await sandbox.commands.run("sleep 1000", { background: true });
    same(await sandbox.commands.kill(sleeper.pid), true);
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
    await sandbox.files.remove("folder");
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
  },
  setTimeout: async () => {
    await sandbox.setTimeout(10 * MINUTE);
    const { endAt } = await sandbox.getInfo();
    same(endAt.getTime() > Date.now() + 9 * MINUTE, true);
  },
  getMetrics: async () => {
    needs(sandbox, "getMetrics");
    same(Array.isArray(await sandbox.getMetrics()), true);
  },
  getHost: async () => {
    same(sandbox.getHost(3000).startsWith(`3000-${sandbox.sandboxId}.`), true);
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
    const [fork] = await sandbox.fork({ timeoutMs: MINUTE });
    made.push(fork.sandboxId);
    same(await fork.files.read("kept.txt"), "kept");
  },
  snapshots: async () => {
    needs(sandbox, "createSnapshot");
    const { snapshotId } = await sandbox.createSnapshot();
    const copy = await created(snapshotId);
    same(await copy.files.read("kept.txt"), "kept");
    await copy.kill();
    same(await Sandbox.deleteSnapshot(snapshotId), true);
  },
  updateNetwork: async () => {
    needs(sandbox, "updateNetwork");
    await sandbox.updateNetwork({ denyOut: ["0.0.0.0/0"], allowOut: ["example.com"] });
  },
  "Template.exists": async () => {
    needs(Template, "exists");
    same([await Template.exists("base"), await Template.exists("no-such-template")], [true, false]);
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
