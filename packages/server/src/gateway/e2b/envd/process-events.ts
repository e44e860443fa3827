import type { ManagedProcess } from "../../../manager/processes/managed-process.ts";
import type { SharedChunk } from "./output-fanout.ts";

export const KEEP_ALIVE = { event: { keepalive: {} } };

export function startEvent({ pid }: ManagedProcess): unknown {
  return { event: { start: { pid } } };
}

export function dataEvent({ traits }: ManagedProcess, { stream, data }: SharedChunk): unknown {
  return { event: { data: { [traits.pty ? "pty" : stream]: data } } };
}

/** The names of signals as Go writes them. */
const SIGNALS: Readonly<Record<number, string>> = {
  1: "hangup",
  2: "interrupt",
  3: "quit",
  6: "aborted",
  8: "floating point exception",
  9: "killed",
  11: "segmentation fault",
  13: "broken pipe",
  14: "alarm clock",
  15: "terminated",
};

/** The end event of an exited process. */
export function endEvent({ exit }: Pick<ManagedProcess, "exit">): unknown {
  const { code, signal = 0 } = exit ?? {};
  const exited = code !== undefined;
  const status = exited ? `exit status ${code}` : `signal: ${SIGNALS[signal] ?? String(signal)}`;
  const error = code === 0 ? {} : { error: status };
  return { event: { end: { exitCode: code ?? -1, exited, status, ...error } } };
}
