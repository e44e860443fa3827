/** Every folder that may hold tests. */
export const TEST_FOLDERS = "{packages/*/test,agent/test,scripts/test,test}";

/**
 * The suite of a test file, by the word before `.test.ts`. A file without one is a unit test: it needs only Node, starts no
 * server and no process, and takes milliseconds.
 */
export const SUITE_OF_SUFFIX = {
  /** Whole servers, other processes, megabytes or searches: needs only Node. */
  server: "servers",
  /** Attacks. `npm run test:hostile` runs them alone, with as many inputs as you like. */
  hostile: "servers",
  /** Servers that are killed at every step. */
  crash: "crash",
  /** Buckets on real servers. */
  store: "stores",
  /** The agent, which needs a C compiler. */
  agent: "agent",
  /** Programs in Python, which need the environment of test/kit/services/python-environment.ts. */
  python: "python",
  /** Extensions on a real Docker engine and a real sshd. */
  extension: "extensions",
  docker: "docker",
  /** The console in Chromium. */
  browser: "console",
  /** Once on each engine; `pinned.gvisor` and `newest.gvisor` only on that one, where both can run; `long.gvisor` not here. */
  gvisor: "gvisor",
  /** Not part of `npm test`: `npm run test:long`. */
  long: "long",
} as const;

export type Suffix = keyof typeof SUITE_OF_SUFFIX;

export function filesWith(...suffixes: readonly Suffix[]): string[] {
  return suffixes.map((suffix) => `${TEST_FOLDERS}/**/*.${suffix}.test.ts`);
}

export const UNIT_FILES = { include: [`${TEST_FOLDERS}/**/*.test.ts`], exclude: ["**/*.*.test.ts"] };
