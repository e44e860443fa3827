import { homedir } from "node:os";
import type { Io } from "./io.ts";
import { onNpmGone } from "./parent-watch.ts";
import { runProgram } from "./program.ts";
import { processStdin } from "./terminal/process-stdin.ts";
import { processTerminal } from "./terminal/process-terminal.ts";

/** As a program that keeps writing after SIGPIPE would end. */
const NOBODY_READS = 141;
const readerGone = { stdout: false, stderr: false };

const io: Io = {
  stdout: (text) => {
    if (readerGone.stdout) process.exit(NOBODY_READS);
    process.stdout.write(text);
  },
  stderr: (text) => process.stderr.write(text),
  writeBytes: (to, bytes) =>
    new Promise((resolve) => {
      // A stream that has failed once never calls back.
      if (readerGone[to]) return resolve(false);
      process[to].write(bytes, (error) => resolve(!error && !readerGone[to]));
    }),
  interactive: process.stderr.isTTY,
  stdoutIsTerminal: process.stdout.isTTY,
  stdin: processStdin(),
  get terminal() {
    return processTerminal();
  },
  env: process.env,
  homeDirectory: homedir(),
  workingDirectory: process.cwd(),
  onStopSignal(listener, { hangUp = false } = {}) {
    const signals: NodeJS.Signals[] = ["SIGTERM", "SIGINT", ...(hangUp ? ["SIGHUP" as const] : [])];
    for (const signal of signals) process.on(signal, listener);
    const stopWatching = onNpmGone(process.env, () => listener("npm has exited"));
    return () => {
      for (const signal of signals) process.off(signal, listener);
      stopWatching();
    };
  },
  // An older Node that started this one talks to it over a channel; see bin/sandboxer.mjs.
  outliveParent: () => void process.removeAllListeners("disconnect"),
  exit: (code) => process.exit(code),
};

// A closed stdout ends writers (`sandboxer events -f | head`), but not a server.
for (const name of ["stdout", "stderr"] as const) process[name].on("error", () => (readerGone[name] = true));

const exitCode = await runProgram(process.argv.slice(2), io);
// Output to a pipe may still be in flight.
await Promise.all([io.writeBytes("stdout", new Uint8Array()), io.writeBytes("stderr", new Uint8Array())]);
process.exit(exitCode);
