import { spawn } from "node:child_process";
import { once } from "node:events";
import { join } from "node:path";
import { createInterface } from "node:readline";
import type { TestDomain } from "../../test/kit/services/test-domain.ts";

const SCENARIO_MS = 15 * 60_000;

/** The result of a step of a scenario; `missing`: the package does not have the call. */
export interface ScenarioLine {
  readonly step: string;
  readonly result: "ok" | "missing" | "failed";
  readonly message?: string;
}

export interface Scenario {
  readonly program: string;
  /** The file beside this one, and its arguments. */
  readonly arguments: readonly [string, ...string[]];
  /** The server's address, or the domain that leads to it. */
  readonly at: string | Pick<TestDomain, "domain" | "withNames" | "env">;
  readonly env?: Readonly<Record<string, string>>;
}

/** Older packages only take keys of this form; a server without keys takes any. */
export const SCENARIO_KEY = "e2b_00ff00ff00ff00ff00ff00ff00ff00ff";

/** Runs E2B's unmodified packages with the environment that a user would set. */
export async function runScenario(
  { program, arguments: [file, ...rest], at, env = {} }: Scenario,
  onLine: (line: ScenarioLine) => void = () => {},
): Promise<ScenarioLine[]> {
  const place =
    typeof at === "string"
      ? { E2B_API_URL: `${at}/e2b`, E2B_SANDBOX_URL: `${at}/e2b` }
      : { E2B_DOMAIN: at.domain, ...at.env };
  const before = typeof at === "string" ? [] : at.withNames;
  const [first = program, ...argv] = [...before, program, join(import.meta.dirname, file), ...rest];
  const child = spawn(first, argv, {
    env: { ...process.env, E2B_API_KEY: SCENARIO_KEY, ...place, ...env },
    stdio: ["ignore", "pipe", "inherit"],
    timeout: SCENARIO_MS,
  });
  const lines: ScenarioLine[] = [];
  createInterface(child.stdout).on("line", (text) => {
    const line = JSON.parse(text) as ScenarioLine;
    lines.push(line);
    onLine(line);
  });
  const [code, signal] = (await once(child, "close")) as [number | null, string | null];
  if (code !== 0)
    lines.push({ step: "the program itself", result: "failed", message: `it ended with ${signal ?? code}` });
  return lines;
}
