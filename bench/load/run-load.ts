import { execFile } from "node:child_process";
import { fileURLToPath } from "node:url";
import { promisify } from "node:util";
import type { LoadRequest, LoadResult } from "./client-load.ts";

const PROGRAM = fileURLToPath(new URL("./client-load.ts", import.meta.url));

/** In a separate process, so that clients and measurements do not wait for each other. */
export async function runLoad(order: LoadRequest): Promise<LoadResult> {
  const { stdout } = await promisify(execFile)(process.execPath, [PROGRAM, JSON.stringify(order)], {
    timeout: 180_000,
    maxBuffer: 64 * 1024 * 1024,
  });
  return JSON.parse(stdout) as LoadResult;
}
