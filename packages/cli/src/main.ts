import { homedir } from "node:os";
import type { Io } from "./io.ts";
import { onNpmGone } from "./parent-watch.ts";
import { runProgram } from "./program.ts";
import { processStdin } from "./terminal/process-stdin.ts";
import { processTerminal } from "./terminal/process-terminal.ts";

const io: Io = {
  stdout: (text) => process.stdout.write(text),
  stderr: (text) => process.stderr.write(text),
  writeBytes: (to, bytes) =>
    new Promise((resolve) => {
      process[to].write(bytes, () => resolve());
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
  onStopSignal(listener) {
    const signals = ["SIGTERM", "SIGINT"] as const;
    for (const signal of signals) process.on(signal, listener);
    const stopWatching = onNpmGone(process.env, () => listener("npm is gone"));
    return () => {
      for (const signal of signals) process.off(signal, listener);
      stopWatching();
    };
  },
  exit: (code) => process.exit(code),
};

// A reader that goes away (`sandboxer doctor | head`) ends nothing: a server goes on.
for (const stream of [process.stdout, process.stderr]) stream.on("error", () => {});

const exitCode = await runProgram(process.argv.slice(2), io);
// What was written to a pipe may still be on its way.
await Promise.all([io.writeBytes("stdout", new Uint8Array()), io.writeBytes("stderr", new Uint8Array())]);
process.exit(exitCode);
