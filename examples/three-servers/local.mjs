/**
 * Three servers on one store behind a load balancer, without containers.
 *
 *   node examples/three-servers/local.mjs [--port 8080] [-- FLAGS OF sandboxer serve]
 *
 * Outside of the clone: npm install @sandboxer/cli
 *
 * Type `roll` to replace one server after the other, and `kill` to do the same with kill -9; Ctrl-C ends all of them. The store is a folder of its own and is removed at the
 * end, unless the flags name another one.
 */
import { spawn } from "node:child_process";
import { existsSync, mkdtempSync, rmSync } from "node:fs";
import { createRequire } from "node:module";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { createInterface } from "node:readline";
import { fileURLToPath } from "node:url";
import { parseArgs } from "node:util";
import { startBalancer } from "./balancer.mjs";

const COMMAND = findCommand();
const { values, positionals: flags } = parseArgs({
  options: { port: { type: "string", default: "8080" } },
  allowPositionals: true,
});
const scratch = mkdtempSync(join(tmpdir(), "three-servers-"));

const up = new Map();
await Promise.all(["server-1", "server-2", "server-3"].map(async (name) => up.set(name, await start(name))));
const balancer = await startBalancer(Number(values.port), () => [...up.values()]);
console.log(`Balancer      ws://127.0.0.1:${balancer.port}`);

let ending = false;
for (const signal of ["SIGINT", "SIGTERM"]) process.on(signal, () => void end());
for await (const line of createInterface({ input: process.stdin })) {
  if (line.trim() === "roll") await roll("SIGTERM", "rolled");
  if (line.trim() === "kill") await roll("SIGKILL", "killed");
}

/** The clone's command, or the installed one. */
function findCommand() {
  const ofClone = fileURLToPath(new URL("../../packages/cli/bin/sandboxer.mjs", import.meta.url));
  if (existsSync(ofClone)) return ofClone;
  try {
    return join(createRequire(import.meta.url).resolve("@sandboxer/cli/package.json"), "../bin/sandboxer.mjs");
  } catch {
    console.error("This example needs the command: npm install @sandboxer/cli");
    process.exit(1);
  }
}

/** A server that is going gets no new connections: a balancer with a health check learns that from /readyz. */
async function roll(signal, done) {
  for (const name of Array.from(up.keys())) {
    const server = up.get(name);
    up.delete(name);
    await stop(server, signal);
    up.set(name, await start(name));
    console.log(`${name}      replaced`);
  }
  console.log(done);
}

async function start(name) {
  const places = ["--store", join(scratch, "store"), "--data-directory", join(scratch, name)];
  const child = spawn(process.execPath, [COMMAND, "serve", "--json", "--port", "0", ...places, ...flags], {
    stdio: ["ignore", "pipe", "inherit"],
    // Ctrl-C in a terminal goes to everything in it; the servers end when they are told to.
    detached: true,
  });
  const ended = new Promise((resolve) => child.once("exit", resolve));
  const first = new Promise((resolve) => createInterface({ input: child.stdout }).once("line", resolve));
  const line = await Promise.race([first, ended]);
  if (typeof line !== "string") throw new Error(`${name} did not start`);
  const { hostname: host, port: serverPort } = new URL(JSON.parse(line).url);
  return { host, port: Number(serverPort), child, ended };
}

/** Saves every sandbox that can be saved, with what executes in it, and gives it up. */
async function stop({ child, ended }, signal = "SIGTERM") {
  child.kill(signal);
  await ended;
}

async function end() {
  if (ending) return;
  ending = true;
  balancer.close();
  await Promise.all([...up.values()].map((server) => stop(server)));
  rmSync(scratch, { recursive: true, force: true });
  process.exit(0);
}
