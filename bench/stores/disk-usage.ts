import { execFile } from "node:child_process";
import { promisify } from "node:util";

/** The disk usage of a folder, after everything was written. */
export async function diskMegabytes(folder: string): Promise<number> {
  await promisify(execFile)("sync", ["-f", folder]);
  const { stdout } = await promisify(execFile)("du", ["--summarize", "--block-size=1", folder]);
  return Number(stdout.split("\t")[0]) / 1_000_000;
}
