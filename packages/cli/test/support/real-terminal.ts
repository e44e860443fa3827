import { spawn, spawnSync } from "node:child_process";
import { fileURLToPath } from "node:url";
import { expect, onTestFinished } from "vitest";
import { COMMAND } from "../../../../test/kit/server/command.ts";

const DRIVER = fileURLToPath(new URL("pty-driver.py", import.meta.url));

/** Python supports terminals; Node does not. */
export const hasPython = spawnSync("python3", ["-c", "import pty, os; os.waitstatus_to_exitcode"]).status === 0;

export interface RealTerminal {
  readonly screen: () => string;
  /** Waits until the terminal shows this. */
  shows(text: string | RegExp): Promise<void>;
  send(text: string): void;
  resize(rows: number, columns: number): void;
  kill(signal: number): void;
  /** Closes the terminal, as its window does. */
  hangUp(): void;
  readonly ended: Promise<{ readonly code: number; readonly modes_restored: boolean }>;
}

/** The CLI as a process of its own in a real terminal of 30 rows and 100 columns. */
export function inTerminal(argv: readonly string[], env: Readonly<Record<string, string>>): RealTerminal {
  return nodeInTerminal([COMMAND, ...argv], env);
}

/** Any program of Node. */
export function nodeInTerminal(argv: readonly string[], env: Readonly<Record<string, string>> = {}): RealTerminal {
  const child = spawn("python3", [DRIVER, process.execPath, ...argv], {
    env: { PATH: process.env["PATH"], TERM: "xterm", HOME: process.env["HOME"], ...env },
    stdio: ["pipe", "pipe", "pipe"],
  });
  onTestFinished(() => void child.kill("SIGKILL"));
  let screen = "";
  let report = "";
  child.stdout.on("data", (data: Buffer) => (screen += data.toString()));
  child.stderr.on("data", (data: Buffer) => (report += data.toString()));
  const order = (what: object): void => void child.stdin.write(`${JSON.stringify(what)}\n`);
  return {
    screen: () => screen,
    shows: async (text) => {
      await expect.poll(() => screen, { timeout: 60_000, interval: 20 }).toMatch(text);
    },
    send: (text) => order({ send: text }),
    resize: (rows, columns) => order({ resize: [rows, columns] }),
    kill: (signal) => order({ kill: signal }),
    hangUp: () => order({ hang_up: true }),
    ended: new Promise((resolve) => {
      child.on("close", () => {
        // A failed test has ended it.
        if (report !== "") resolve(JSON.parse(report) as { code: number; modes_restored: boolean });
      });
    }),
  };
}
