import { readFileSync } from "node:fs";

const LOOK_EVERY_MS = 300;

/**
 * Calls back when the npm that started this process has exited. npm runs commands through a shell, which dies of a
 * signal that is sent to npm and passes nothing on; without this, `kill` on `npm start` or `npx` would leave a server
 * behind.
 */
export function onNpmGone(env: Readonly<Record<string, string | undefined>>, listener: () => void): () => void {
  if (env["npm_command"] === undefined) return () => {};
  const shell = process.ppid;
  const npm = parentOf(shell);
  const timer = setInterval(() => {
    if (process.ppid === shell && parentOf(shell) === npm) return;
    clearInterval(timer);
    listener();
  }, LOOK_EVERY_MS);
  timer.unref();
  return () => clearInterval(timer);
}

/** Undefined without /proc. */
function parentOf(processId: number): number | undefined {
  try {
    // The program's name is in parentheses and may contain anything; state and parent follow.
    const afterName = readFileSync(`/proc/${processId}/stat`, "utf8").split(") ").at(-1);
    return Number(afterName?.split(" ")[1]);
  } catch {
    return undefined;
  }
}
