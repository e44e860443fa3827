import { mkdirSync, mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { dirname, join } from "node:path";
import type { SetupContext, SetupStep } from "../../src/setup/index.ts";

export interface SetupFixture extends Disposable {
  readonly directory: string;
  readonly steps: SetupStep[];
  readonly context: SetupContext;
  /** An executable shell script. */
  program(name: string, script: string): string;
}

/** A machine with an empty cache and an empty PATH. */
export function setupFixture(overrides: Partial<SetupContext> = {}): SetupFixture {
  const directory = mkdtempSync(join(tmpdir(), "setup-"));
  const steps: SetupStep[] = [];
  const context: SetupContext = {
    cacheDirectory: join(directory, "cache"),
    searchPath: join(directory, "bin"),
    platform: "auto",
    report: (step) => steps.push(step),
    ...overrides,
  };
  return {
    directory,
    steps,
    context,
    program(name, script) {
      const path = join(directory, name);
      mkdirSync(dirname(path), { recursive: true });
      writeFileSync(path, `#!/bin/sh\n${script}\n`, { mode: 0o755 });
      return path;
    },
    [Symbol.dispose]: () => rmSync(directory, { recursive: true, force: true }),
  };
}
