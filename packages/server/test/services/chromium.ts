import { existsSync } from "node:fs";

/** A browser that tests can start. */
export interface FoundChromium {
  readonly path: string;
  /** What it needs besides the environment of the tests. */
  readonly env: Readonly<Record<string, string>>;
}

const OF_THE_SYSTEM = ["/usr/lib/chromium/chromium", "/usr/bin/chromium", "/usr/bin/google-chrome"];

export async function findChromium(): Promise<FoundChromium | { readonly missing: string }> {
  const path = OF_THE_SYSTEM.find((candidate) => existsSync(candidate));
  return path === undefined ? { missing: "There is no chromium here." } : { path, env: {} };
}
