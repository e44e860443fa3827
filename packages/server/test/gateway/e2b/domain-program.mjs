/** A program of a user of E2B's packages, who sets `E2B_DOMAIN` and `E2B_API_KEY` and nothing else. */
import dns from "node:dns";

// The test's own names: all of them are this machine.
const lookup = dns.lookup;
dns.lookup = (name, options, done) => lookup(name.endsWith(".test") ? "127.0.0.1" : name, options, done);

const { Sandbox } = await import("@e2b/code-interpreter");
const sandbox = await Sandbox.create({ metadata: { by: "domain" } });
const { commands, files } = sandbox;
const { stdout } = await commands.run("echo hello");
const command = await commands.run("read x; echo got $x", { background: true, stdin: true });
await commands.sendStdin(command.pid, "words\n");
const { stdout: background } = await command.wait();

await files.makeDir("/workspace/watched");
const changed = Promise.withResolvers();
const watch = await files.watchDir("/workspace/watched", ({ name }) => changed.resolve(name === "a.txt"));
await files.write("/workspace/watched/a.txt", "content");
const isChanged = await changed.promise;
await watch.stop();
const content = await files.read("/workspace/watched/a.txt");
const url = await sandbox.downloadUrl("/workspace/watched/a.txt");
const downloaded = await (await fetch(url)).text();

const { text: cell } = await sandbox.runCode("6 * 7", { language: "javascript" });
const listed = await Sandbox.list({ query: { metadata: { by: "domain" } } }).nextItems();
const host = sandbox.getHost(3000);
await sandbox.pause();
const isRunning = await sandbox.isRunning();
await sandbox.connect();
const paused = [isRunning, await files.read("/workspace/watched/a.txt")];
const isKilled = await sandbox.kill();
const found = {
  id: sandbox.sandboxId,
  stdout,
  background,
  content,
  changed: isChanged,
  downloaded,
  paused,
  cell,
  url,
  host,
  listed: listed.length,
  isKilled,
};
process.stdout.write(JSON.stringify(found));
process.exit(0);
