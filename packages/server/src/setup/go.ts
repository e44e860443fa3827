import { findProgram } from "./files.ts";
import { runCommand, type CommandOptions, type CommandResult } from "./run-command.ts";

/** The path of Go's installation guide; a login shell's PATH has it, a service's often does not. */
const USUAL_GO = "/usr/local/go/bin";
/** Messages of Go about a connection to a proxy that broke or stalled. An unknown name or a refusal stays one. */
const BROKEN_TRANSFER = /timeout|timed out|connection reset|broken pipe|unexpected EOF|: EOF\b|50[0234] /i;
const TRIES = 3;

export function findGo(searchPath: string): string | undefined {
  return findProgram("go", `${searchPath}:${USUAL_GO}`);
}

/** Runs `go install`. Go keeps the modules that have arrived, so a broken transfer is tried again. */
export async function goInstall(go: string, args: readonly string[], options: CommandOptions): Promise<CommandResult> {
  for (let left = TRIES - 1; ; left -= 1) {
    const result = await runCommand([go, "install", ...args], options);
    if (result.code === 0 || left === 0 || !BROKEN_TRANSFER.test(result.stderr)) return result;
  }
}
