import { homedir } from "node:os";
import type { Io } from "./io.ts";
import { runProgram } from "./program.ts";

const io: Io = {
  stdout: (text) => process.stdout.write(text),
  stderr: (text) => process.stderr.write(text),
  interactive: process.stderr.isTTY,
  env: process.env,
  homeDirectory: homedir(),
  workingDirectory: process.cwd(),
  onStopSignal(listener) {
    const signals = ["SIGTERM", "SIGINT"] as const;
    for (const signal of signals) process.on(signal, listener);
    return () => {
      for (const signal of signals) process.off(signal, listener);
    };
  },
  exit: (code) => process.exit(code),
};

// A reader that goes away (`sandboxer doctor | head`) is no failure.
process.stdout.on("error", (error: NodeJS.ErrnoException) => process.exit(error.code === "EPIPE" ? 0 : 1));

process.exit(await runProgram(process.argv.slice(2), io));
