/**
 * Creates a sandbox, starts a program in it, pauses and resumes the sandbox, and shows that the program never noticed.
 * No dependencies: it runs wherever you copy it, with Node 22 or newer.
 *
 *   node examples/hello.mjs [ws://127.0.0.1:8080]
 */
import { spawnSync } from "node:child_process";
import { existsSync } from "node:fs";
import { fileURLToPath } from "node:url";

const server = process.argv[2] ?? "ws://127.0.0.1:8080";

if (typeof WebSocket === "undefined") {
  // Node older than 22: the clone brings a newer one.
  const node = fileURLToPath(new URL("../node_modules/.bin/node", import.meta.url));
  if (existsSync(node)) process.exit(spawnSync(node, process.argv.slice(1), { stdio: "inherit" }).status ?? 1);
  console.error(`This example needs Node 22 or newer; this is ${process.version}.`);
  process.exit(1);
}

const COUNTER = `
import subprocess, sys
subprocess.Popen([sys.executable, "-c", """
import time
count = 0
while True:
    count += 1
    open("/tmp/count", "w").write(str(count))
    time.sleep(0.1)
"""], start_new_session=True, stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
print("  started a counter that lives in memory")
`;
const READ = `import time; time.sleep(1); print("  the counter is at", open("/tmp/count").read())`;

console.log(`Creating a sandbox at ${server}`);
const created = await connect(`${server}/create`, { enable_checkpoint: true, idle_timeout: 60, extensions: true });
await created.waitFor("SANDBOX_RUNNING");
await created.run(COUNTER);
await created.run(READ);
console.log("Pausing it: its state is saved, and its processes end");
created.send({ action: "checkpoint" });
await created.waitFor("SANDBOX_CHECKPOINTED");

console.log("Resuming it");
const attached = await connect(`${server}/attach/${created.sandboxId}?extensions=1`);
await attached.waitFor("SANDBOX_RUNNING");
await attached.run(READ);
attached.send({ action: "kill_sandbox" });
await attached.waitFor("SANDBOX_KILLED");
console.log("Done: the counter continued where it stopped.");

async function connect(url, firstMessage) {
  const socket = new WebSocket(url);
  const session = { sandboxId: undefined, send: (message) => socket.send(JSON.stringify(message)), waitFor, run };
  const seen = [];
  let wake = () => {};
  socket.onmessage = ({ data }) => {
    const message = JSON.parse(data);
    if (message.event === "sandbox_id") session.sandboxId = message.sandbox_id;
    if (message.event === "stdout" || message.event === "stderr") process.stdout.write(message.data);
    if (message.event === "status_update") seen.push(message.status);
    if (message.event === "error") fail(`The server says: ${message.message} ${message.hint ?? ""}`);
    wake();
  };
  socket.onclose = ({ code }) => {
    seen.push(`closed with ${code}`);
    wake();
  };
  await new Promise((resolve) => {
    socket.onopen = resolve;
    socket.onerror = () => fail(`No server at ${url}. Start one with: npx @sandboxer/cli serve --default-store`);
  });
  if (firstMessage !== undefined) session.send(firstMessage);
  return session;

  async function waitFor(status) {
    while (!seen.includes(status)) {
      if (seen.at(-1)?.startsWith("closed")) fail(`The connection was ${seen.at(-1)} before ${status}.`);
      await new Promise((resolve) => (wake = resolve));
    }
    seen.splice(0, seen.indexOf(status) + 1);
  }

  async function run(code) {
    session.send({ language: "python", code });
    await waitFor("SANDBOX_EXECUTION_DONE");
  }
}

function fail(message) {
  console.error(message);
  process.exit(1);
}
