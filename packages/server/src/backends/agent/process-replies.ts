import type { OutputBounds, ProcessExit, ProcessTableEntry } from "../backend.ts";
import { type AgentProcessRecord } from "./agent-process.ts";
import { type PayloadReader } from "./payload.ts";

/** The agent's facts about one of its processes, and where the log of its output begins and ends. */
export function readProcess(reply: PayloadReader): AgentProcessRecord & { readonly bounds: OutputBounds } {
  const [process, pid] = [reply.u32(), reply.u32()];
  const exited = reply.u8() === 1;
  reply.u8();
  const [code, signal] = [reply.i32(), reply.i32()];
  const [start, acknowledged, end] = [reply.u64(), reply.u64(), reply.u64()];
  const exit = exited ? toExit(code, signal, end) : undefined;
  return { process, pid, key: reply.string(), acknowledged, exit, bounds: { start, end } };
}

export function toExit(code: number, signal: number, outputEnd: number): ProcessExit {
  return { code: signal === 0 ? code : undefined, signal: signal === 0 ? undefined : signal, outputEnd };
}

/** Every process inside. */
export function readProcessTable(reply: PayloadReader): ProcessTableEntry[] {
  return reply.list(() => ({
    pid: reply.u32(),
    parentPid: reply.u32(),
    uid: reply.u32(),
    state: String.fromCharCode(reply.u8()),
    residentBytes: reply.u64(),
    cpuMs: reply.u64(),
    command: reply.string(),
  }));
}
