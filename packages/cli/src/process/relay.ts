import { setTimeout as sleep } from "node:timers/promises";
import type { SandboxProcess } from "@sandboxer/client";
import { SandboxerError } from "@sandboxer/protocol/errors";
import type { Io, Terminal } from "../io.ts";
import { onStopRequests } from "../stop-signals.ts";
import { DetachKeys } from "../terminal/detach-keys.ts";
import type { ProcessEnd } from "./exit-code.ts";

export interface RelayOptions {
  /** Send stdin. */
  readonly stdin: boolean;
  /** The end of stdin closes the process's stdin. */
  readonly closeStdin: boolean;
  /** Connect its terminal to ours. */
  readonly terminal: Terminal | undefined;
  readonly detachKeys: Uint8Array;
}

/** How long detaching waits for typed input to arrive. A terminal accepts it at once, whatever its program does. */
const LEAVE_MS = 5000;

/** Undefined: the user detached. */
export type RelayEnd = ProcessEnd | undefined;

/**
 * Makes a process in a sandbox behave like a local one: its output is ours; our stdin, terminal size and Ctrl-C go to
 * it. The SDK restores lost connections, and knows what has arrived.
 */
export async function relay(io: Io, process: SandboxProcess, options: RelayOptions): Promise<RelayEnd> {
  const { terminal } = options;
  let detached = false;
  let interruptedBy: string | undefined;
  let failure: unknown;
  const leave = (): void => {
    detached = true;
    process.detach();
  };
  const giveUp = (signal: string): void => {
    interruptedBy = signal;
    process.detach();
  };
  const leaveRawMode = terminal?.enterRawMode(giveUp);
  const stopResizing = terminal?.onResize(() => void process.resize(terminal.size()).catch(() => {}));
  const stopSignals = terminal === undefined ? forwardInterrupts(io, process, giveUp) : undefined;
  if (options.stdin) {
    void sendStdin(io, process, options, leave).catch((error: unknown) => {
      failure = error;
      // The program would wait for the rest forever, or take a part for the whole.
      void process.kill().catch(() => {});
      process.detach();
    });
  }
  try {
    for await (const { stream, data } of process.chunks()) {
      if ((await io.writeBytes(stream, data)) || stream === "stderr") continue;
      // As for a writer into a closed pipe.
      await process.kill("SIGPIPE").catch(() => {});
      giveUp("SIGPIPE");
    }
  } finally {
    stopSignals?.();
    stopResizing?.();
    leaveRawMode?.();
  }
  if (failure !== undefined) throw failure;
  if (interruptedBy !== undefined) return { exitCode: null, signal: interruptedBy };
  return detached ? undefined : process.exit;
}

async function sendStdin(io: Io, process: SandboxProcess, options: RelayOptions, leave: () => void): Promise<void> {
  const keys = new DetachKeys(options.terminal === undefined ? new Uint8Array() : options.detachKeys);
  let lastWrite: Promise<void> | undefined;
  try {
    for await (const typed of io.stdin.bytes()) {
      const { pass, detach } = keys.filter(typed);
      const written = process.write(pass);
      // Typed input is not awaited; a pipe must be, or it would fill our memory.
      if (options.terminal === undefined) await written;
      else written.catch(() => {});
      if (pass.length > 0) lastWrite = written;
      if (!detach) continue;
      await Promise.race([lastWrite?.catch(() => {}), sleep(LEAVE_MS, undefined, { ref: false })]);
      return leave();
    }
    if (options.closeStdin) process.closeStdin();
  } catch (error) {
    if (error instanceof SandboxerError && error.code === "server_unreachable") throw error;
    // The program has ended, or has closed its stdin, which is its own decision.
  }
}

/** Without a terminal, Ctrl-C reaches us and not the program: the first is passed on, the second gives up. */
function forwardInterrupts(io: Io, process: SandboxProcess, giveUp: (signal: string) => void): () => void {
  const passOn = (signal: string): void =>
    void process.kill(signal === "SIGINT" ? "SIGINT" : "SIGTERM").catch(() => {});
  return onStopRequests(io, passOn, giveUp);
}
