import { spawnSync } from "node:child_process";
import type { Terminal } from "../io.ts";

const ENDING = ["SIGTERM", "SIGHUP", "SIGQUIT", "SIGINT"] as const;

/** The terminal of this process, if it has one. */
export function processTerminal(): Terminal | undefined {
  const { stdin, stdout } = process;
  if (!stdin.isTTY || !stdout.isTTY) return undefined;
  return {
    size: () => ({ rows: stdout.rows || 24, columns: stdout.columns || 80 }),
    onResize(listener) {
      stdout.on("resize", listener);
      return () => stdout.off("resize", listener);
    },
    enterRawMode(onSignal) {
      const restore = (): void => {
        stdin.setRawMode(false);
        process.off("exit", restore);
        for (const signal of ENDING) process.off(signal, end);
      };
      const end = (signal: NodeJS.Signals): void => {
        restore();
        onSignal(signal);
      };
      stdin.setRawMode(true);
      leaveOutputAlone();
      // "exit" is also emitted after an uncaught error.
      process.on("exit", restore);
      for (const signal of ENDING) process.on(signal, end);
      return restore;
    },
  };
}

/**
 * The remote terminal has already translated line ends. Node's raw mode would do it again, and full-screen programs
 * move down with a bare line feed. Leaving raw mode restores this, too.
 */
function leaveOutputAlone(): void {
  spawnSync("stty", ["-opost"], { stdio: ["inherit", "ignore", "ignore"] });
}
