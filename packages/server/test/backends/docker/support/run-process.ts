import { spawn } from "node:child_process";
import { once } from "node:events";
import { createInterface } from "node:readline";
import type { ProcessOrder, ProcessReport } from "./server-process.ts";

const PROGRAM = new URL("./server-process.ts", import.meta.url).pathname;

/** Runs a server process until it has reported; one that keeps running is then killed with SIGKILL. */
export async function runProcess(order: ProcessOrder): Promise<ProcessReport> {
  const child = spawn(process.execPath, [PROGRAM, JSON.stringify(order)], { stdio: ["ignore", "pipe", "inherit"] });
  const exited = once(child, "exit");
  for await (const line of createInterface({ input: child.stdout })) {
    if (order.end === "stay") child.kill("SIGKILL");
    await exited;
    return JSON.parse(line) as ProcessReport;
  }
  throw new Error(`The server process ended without a report (${child.exitCode}).`);
}
