import { readdir, readFile } from "node:fs/promises";

/** The memory of a process and all its descendants: shared pages count by their share. */
export async function treeMemoryMiB(pid: number): Promise<number> {
  let total = await ownMemoryMiB(pid);
  for (const child of await childrenOf(pid)) total += await treeMemoryMiB(child);
  return total;
}

async function ownMemoryMiB(pid: number): Promise<number> {
  const text = await readFile(`/proc/${pid}/smaps_rollup`, "utf8").catch(() => "");
  return Number(/^Pss:\s+(\d+) kB$/m.exec(text)?.[1] ?? 0) / 1024;
}

/** Every thread may have children of its own. */
export async function childrenOf(pid: number): Promise<number[]> {
  const children: number[] = [];
  for (const thread of await readdir(`/proc/${pid}/task`).catch(() => [])) {
    const text = await readFile(`/proc/${pid}/task/${thread}/children`, "utf8").catch(() => "");
    children.push(...text.trim().split(" ").filter(Boolean).map(Number));
  }
  return children;
}
