import { spawnSync } from "node:child_process";
import type { Terminal } from "../io.ts";

const ENDING = ["SIGTERM", "SIGHUP", "SIGQUIT", "SIGINT"] as const;

/** The terminal of this process, where it has one. */
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
      // "exit" also comes after an error that nobody caught.
      process.on("exit", restore);
      for (const signal of ENDING) process.on(signal, end);
      return restore;
    },
  };
}

/**
 * The remote terminal has made line ends of its own already. Node's raw mode would make them again, and programs that
 * draw on the whole screen move down with a bare line feed. Leaving raw mode puts this back, too.
 */
function leaveOutputAlone(): void {
  spawnSync("stty", ["-opost"], { stdio: ["inherit", "ignore", "ignore"] });
}
