import type { Terminal } from "../io.ts";

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
    enterRawMode() {
      const restore = (): void => {
        stdin.setRawMode(false);
        process.off("exit", restore);
        for (const signal of ENDING) process.off(signal, end);
      };
      const end = (signal: NodeJS.Signals): void => {
        restore();
        process.kill(process.pid, signal);
      };
      stdin.setRawMode(true);
      // "exit" also comes after an error that nobody caught.
      process.on("exit", restore);
      for (const signal of ENDING) process.on(signal, end);
      return restore;
    },
  };
}

const ENDING = ["SIGTERM", "SIGHUP", "SIGQUIT", "SIGINT"] as const;
