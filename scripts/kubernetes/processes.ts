import { execFile, spawn } from "node:child_process";
import { createWriteStream } from "node:fs";
import { mkdir } from "node:fs/promises";
import { join } from "node:path";
import { promisify } from "node:util";

export interface Programs {
  /** Has `logs`, a file for each process. */
  readonly folder: string;
  readonly env: Readonly<Record<string, string>>;
}

/** Starts a program that runs until the end of this process's namespaces; its output is `logs/NAME` in the folder. */
export async function startProcess({ folder, env }: Programs, name: string, argv: readonly string[]): Promise<void> {
  await mkdir(join(folder, "logs"), { recursive: true });
  const log = createWriteStream(join(folder, "logs", name));
  const [program = "", ...rest] = argv;
  const child = spawn(program, rest, { env: { ...process.env, ...env }, stdio: ["ignore", "pipe", "pipe"] });
  for (const stream of [child.stdout, child.stderr]) stream.pipe(log, { end: false });
  child.once("exit", (code, signal) =>
    console.error(`${name} has ended with ${signal ?? code}: ${log.path.toString()}`),
  );
  child.once("error", (error) => console.error(`${name} could not be started: ${error.message}`));
}

/** Runs a program to its end, and gives its output. */
export async function output(argv: readonly string[], env: Readonly<Record<string, string>> = {}): Promise<string> {
  const [program = "", ...rest] = argv;
  const options = { env: { ...process.env, ...env }, maxBuffer: 64 * 1024 * 1024 };
  const { stdout } = await promisify(execFile)(program, rest, options);
  return stdout;
}

/** The same in the network of a node. */
export function inNetworkOf(node: string, argv: readonly string[]): readonly string[] {
  return ["nsenter", `--net=/run/netns/${node}`, "--", ...argv];
}
