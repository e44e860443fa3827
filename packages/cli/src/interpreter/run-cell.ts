import { readFile } from "node:fs/promises";
import { resolve } from "node:path";
import type { CellEvent, Interpreter } from "@sandboxer/client";
import { SandboxerError } from "@sandboxer/protocol/errors";
import { exitCodeOf } from "../process/exit-code.ts";
import type { Run } from "../run.ts";
import { INTERRUPTED, onStopRequests } from "../stop-signals.ts";
import { CellPrinter } from "./print-cell.ts";

/** The code of the command line: -c, a file, or stdin. Undefined: a terminal, whose user types cells. */
export async function cellCode(run: Run, file: string | undefined): Promise<string | undefined> {
  const code = run.text("code");
  if (code !== undefined && file !== undefined) {
    throw new SandboxerError("bad_request", "Give a file or --code, not both.");
  }
  if (code !== undefined) return code;
  if (file !== undefined && file !== "-") return readFile(resolve(run.io.workingDirectory, file), "utf8");
  if (run.io.terminal !== undefined && !run.json && file === undefined) return undefined;
  return Buffer.concat(await Array.fromAsync(run.io.stdin.bytes())).toString("utf8");
}

/** Runs one cell to its end, and sets the exit code. */
export async function runCell(run: Run, interpreter: Interpreter, code: string, folder: string): Promise<void> {
  const { io } = run;
  const stop = new AbortController();
  const interrupt = (): void => void interpreter.interrupt().catch(() => {});
  const stopListening = onStopRequests(io, interrupt, () => stop.abort());
  const write = (to: "stdout" | "stderr", text: string): Promise<unknown> => io.writeBytes(to, Buffer.from(text));
  const printer = new CellPrinter({ folder, write });
  const print = (event: CellEvent): Promise<void> =>
    run.json ? Promise.resolve(io.stdout(`${JSON.stringify(event)}\n`)) : printer.print(event);
  try {
    for await (const event of interpreter.stream(code, { signal: stop.signal })) {
      await print(event);
      if (event.type === "end") run.setExitCode(exitCode(event));
    }
  } catch (error) {
    if (!stop.signal.aborted) throw error;
    run.setExitCode(INTERRUPTED);
  } finally {
    stopListening();
  }
}

function exitCode(end: Extract<CellEvent, { type: "end" }>): number {
  if (end.status === "ok") return 0;
  if (end.status === "interrupted") return INTERRUPTED;
  return end.status === "died" ? exitCodeOf(end) || 1 : 1;
}
