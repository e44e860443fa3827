import { spawn } from "node:child_process";

/** Runs a program to its end; throws with the last lines of its output. */
export async function runProgram(
  command: readonly [string, ...string[]],
  options: { readonly signal: AbortSignal; readonly env?: Record<string, string> },
): Promise<void> {
  const [program, ...args] = command;
  const child = spawn(program, args, {
    stdio: ["ignore", "pipe", "pipe"],
    env: { ...process.env, ...options.env },
    signal: options.signal,
  });
  const said: Buffer[] = [];
  for (const stream of [child.stdout, child.stderr]) stream.on("data", (data: Buffer) => said.push(data));
  const code = await new Promise<number | null>((resolve, reject) => {
    child.on("error", reject);
    child.on("close", resolve);
  });
  if (code === 0) return;
  const lines = Buffer.concat(said).toString().trim().split("\n");
  throw new Error(`${command.join(" ")} ended with ${code}: ${lines.slice(-5).join("\n")}`);
}
