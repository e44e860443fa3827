/** A program of a user of E2B's package, who sets `E2B_DOMAIN` and `E2B_API_KEY` and nothing else. */
import dns from "node:dns";

// The test's own names: all of them are this machine.
const lookup = dns.lookup;
dns.lookup = (name, options, done) => lookup(name.endsWith(".test") ? "127.0.0.1" : name, options, done);

const { Sandbox } = await import("e2b");
const sandbox = await Sandbox.create({ metadata: { by: "domain" } });
const { stdout } = await sandbox.commands.run("echo hello");
const command = await sandbox.commands.run("read x; echo got $x", { background: true, stdin: true });
await sandbox.commands.sendStdin(command.pid, "words\n");
const { stdout: background } = await command.wait();
await sandbox.files.write("/workspace/a.txt", "content");
const content = await sandbox.files.read("/workspace/a.txt");
const listed = await Sandbox.list({ query: { metadata: { by: "domain" } } }).nextItems();
const url = await sandbox.downloadUrl("/workspace/a.txt");
const downloaded = await (await fetch(url)).text();
const host = sandbox.getHost(3000);
const isKilled = await sandbox.kill();
const found = {
  id: sandbox.sandboxId,
  stdout,
  background,
  content,
  downloaded,
  url,
  host,
  isKilled,
  listed: listed.length,
};
process.stdout.write(JSON.stringify(found));
process.exit(0);
