import { execFile } from "node:child_process";
import { existsSync } from "node:fs";
import { copyFile } from "node:fs/promises";
import { delimiter, join } from "node:path";
import { promisify } from "node:util";

const run = promisify(execFile);
const MODEL = new URL("lease.pml", import.meta.url).pathname;
const INSTALL_MS = 90_000;

export interface Verdict {
  readonly errors: number;
  readonly states: number;
  /** The promise that was broken. */
  readonly broken: string | undefined;
}

/** Why the model cannot be checked here, or undefined. Debian's spin is installed where this process may do that. */
export async function whyNot(): Promise<string | undefined> {
  if (!isThere("cc")) return "There is no C compiler.";
  if (isThere("spin")) return undefined;
  if (process.getuid?.() !== 0 || !existsSync("/etc/debian_version")) {
    return "There is no spin; on Debian it is in the package spin.";
  }
  const [installer, ...rest] = ["apt-get", "install", "--yes", "--no-install-recommends", "spin"] as const;
  const env = { ...process.env, DEBIAN_FRONTEND: "noninteractive" };
  await run(installer, rest, { env, timeout: INSTALL_MS }).catch(() => {});
  return isThere("spin") ? undefined : "There is no spin, and it could not be installed.";
}

/** Goes through every state of the model with these switches, in a folder of its own; or until a promise is broken. */
export async function check(folder: string, switches: readonly string[], optimise: "-O0" | "-O1"): Promise<Verdict> {
  const options = { cwd: folder, maxBuffer: 16 * 1024 * 1024 };
  await copyFile(MODEL, join(folder, "lease.pml"));
  await run("spin", ["-a", ...switches.map((name) => `-D${name}`), "lease.pml"], options);
  await run("cc", [optimise, "-w", "-DSAFETY", "-DMEMLIM=2000", "-o", "pan", "pan.c"], options);
  const { stdout } = await run(join(folder, "pan"), ["-m10000", "-E", "-w22"], options);
  const errors = Number(/errors: (\d+)/.exec(stdout)?.[1] ?? Number.NaN);
  const states = Number(/([\d.e+]+) states, stored/.exec(stdout)?.[1] ?? Number.NaN);
  // A search that was cut short has shown nothing.
  if (/max search depth too small|out of memory/.test(stdout)) throw new Error(stdout);
  return { errors, states, broken: /assertion violated (.*) \(at depth/.exec(stdout)?.[1] };
}

function isThere(program: string): boolean {
  return (process.env["PATH"] ?? "").split(delimiter).some((folder) => existsSync(join(folder, program)));
}
