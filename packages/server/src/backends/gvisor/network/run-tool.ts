import { execFile } from "node:child_process";
import { SandboxerError } from "@sandboxer/protocol";

const TIMEOUT_MS = 10_000;

/** A failed program of iproute2 or nftables, with its own message. */
export class ToolError extends SandboxerError {
  readonly stderr: string;

  constructor(argv: readonly string[], stderr: string) {
    const reason = stderr.trim().split("\n")[0] ?? "";
    super("backend_unavailable", `${argv.slice(0, 4).join(" ")} failed: ${reason}`);
    this.stderr = stderr;
  }
}

/** Runs to the end. Everything is an argument, so that the process table shows whose work it is. */
export function runTool(program: string, ...args: readonly string[]): Promise<void> {
  return new Promise((resolve, reject) => {
    execFile(program, args, { timeout: TIMEOUT_MS, killSignal: "SIGKILL" }, (error, _stdout, stderr) => {
      if (error === null) resolve();
      else reject(new ToolError([program, ...args], stderr === "" ? error.message : stderr));
    });
  });
}
