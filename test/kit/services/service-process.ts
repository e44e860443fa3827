import { spawn } from "node:child_process";
import { once } from "node:events";

/**
 * Ends the service when this process ends in any way: its standard input closes then. It is a session of its own, so
 * that it survives the killing of this process's group until it has cleaned up.
 */
const WATCHDOG = `clean_up=$1; shift; exec 3<&0
"$@" < /dev/null 3<&- & service=$!
{ cat <&3; kill -TERM "$service"; sleep 8; kill -KILL "$service"; } > /dev/null 2>&1 & watch=$!
exec 3<&-
wait "$service"
kill "$watch" 2> /dev/null
sh -c "$clean_up" > /dev/null 2>&1
`;
/** Beside other suites, a service may get little of the machine. */
const READY_MS = 120_000;

export interface ServiceProcess {
  /** The end of its output. */
  said(): string;
  running(): boolean;
  stop(): Promise<void>;
}

/** Starts a program; `cleanUp` is a shell script that runs after its end. */
export function startService(
  argv: readonly string[],
  options: { readonly env?: Record<string, string>; readonly cleanUp: string },
): ServiceProcess {
  const child = spawn("sh", ["-c", WATCHDOG, "sh", options.cleanUp, ...argv], {
    stdio: ["pipe", "pipe", "pipe"],
    detached: true,
    env: { ...process.env, ...options.env },
  });
  child.once("exit", () => child.stdin.destroy());
  let text = "";
  for (const stream of [child.stdout, child.stderr]) {
    stream.on("data", (data: Buffer) => (text = (text + data.toString()).slice(-8000)));
  }
  const running = (): boolean => child.exitCode === null && child.signalCode === null;
  return {
    said: () => text,
    running,
    stop: async () => {
      if (!running()) return;
      const ended = once(child, "exit");
      child.stdin.end();
      await ended;
    },
  };
}

/** Polls until the condition holds; fails if the service has ended, or after too long. */
export async function untilReady(service: ServiceProcess, ready: () => Promise<boolean>, what: string): Promise<void> {
  const deadlineMs = performance.now() + READY_MS;
  while (!(await ready())) {
    if (!service.running() || performance.now() > deadlineMs) {
      await service.stop();
      throw new Error(`${what} did not start: ${service.said()}`);
    }
    await new Promise((done) => setTimeout(done, 20));
  }
}
