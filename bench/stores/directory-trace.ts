import { readFileSync, writeFileSync } from "node:fs";
import type { StoreTrace, TracedRequest } from "./trace.ts";

const PRELOAD = new URL("./preload-traced-store.ts", import.meta.url).href;

export interface DirectoryTrace extends StoreTrace {
  readonly nodeFlags: readonly string[];
  readonly env: Readonly<Record<string, string>>;
}

/** A server that is started with these flags and variables writes each call to its store into the file. */
export function traceDirectory(file: string): DirectoryTrace {
  writeFileSync(file, "");
  return {
    nodeFlags: ["--import", PRELOAD],
    env: { BENCH_STORE_TRACE: file },
    requests: () =>
      readFileSync(file, "utf8")
        .split("\n")
        .slice(0, -1)
        .map((line) => JSON.parse(line) as TracedRequest),
  };
}
