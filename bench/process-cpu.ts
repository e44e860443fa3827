import { readFile } from "node:fs/promises";
import { childrenOf } from "./process-memory.ts";

/** The unit of `/proc`: a hundredth of a second, on every Linux. */
const TICK_MS = 10;

export interface CpuUse {
  readonly ownMs: number;
  /** The CPU time of all its live descendants. */
  readonly descendantsMs: number;
}

/** The CPU time of a process and its live descendants since each began. */
export async function cpuUseOf(pid: number): Promise<CpuUse> {
  let descendantsMs = 0;
  for (const child of await childrenOf(pid)) {
    const { ownMs, descendantsMs: below } = await cpuUseOf(child);
    descendantsMs += ownMs + below;
  }
  const text = await readFile(`/proc/${pid}/stat`, "utf8").catch(() => "");
  // The program's name comes before the last parenthesis, and may contain anything.
  const fields = text.slice(text.lastIndexOf(")") + 2).split(" ");
  return { ownMs: (Number(fields[11] ?? 0) + Number(fields[12] ?? 0)) * TICK_MS, descendantsMs };
}
