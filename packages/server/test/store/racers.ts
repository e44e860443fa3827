import { type ChildProcess, spawn } from "node:child_process";
import { once } from "node:events";
import { fileURLToPath } from "node:url";
import type { ObjectStore } from "../../src/store/store.ts";

const PROGRAM = fileURLToPath(new URL("./cell-racer.ts", import.meta.url));

export const RACED_KEY = "sandbox/metadata.json";

export interface Racer {
  readonly child: ChildProcess;
  readonly acknowledged: string[];
  readonly ended: Promise<unknown>;
}

/** Starts a process that appends entries to the chain in a cell; `count` 0: until it is killed. */
export function race(storeAddress: string, name: string, count: number): Racer {
  const child = spawn(process.execPath, [PROGRAM, storeAddress, RACED_KEY, name, `${count}`], {
    stdio: ["ignore", "pipe", "inherit"],
  });
  const acknowledged: string[] = [];
  let rest = "";
  child.stdout.on("data", (data: Buffer) => {
    const lines = (rest + data.toString()).split("\n");
    rest = lines.pop() ?? "";
    acknowledged.push(...lines);
  });
  return { child, acknowledged, ended: once(child, "close") };
}

export async function chainIn(store: ObjectStore): Promise<string[]> {
  const cell = await store.readCell(RACED_KEY);
  return (JSON.parse(Buffer.from(cell?.body ?? []).toString()) as { chain: string[] }).chain;
}
