import { spawn } from "node:child_process";
import { join } from "node:path";
import { createInterface } from "node:readline";

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
  /** The server's address. */
  readonly url: string;
  readonly env?: Readonly<Record<string, string>>;
}

/** Runs E2B's unmodified packages with the environment that a user would set. */
export async function runScenario(
  { program, arguments: [file, ...rest], url, env = {} }: Scenario,
  onLine: (line: ScenarioLine) => void = () => {},
): Promise<ScenarioLine[]> {
  // Older packages only take keys of this form; a server without keys takes any.
  const variables = { E2B_API_URL: `${url}/e2b`, E2B_SANDBOX_URL: `${url}/e2b`, E2B_API_KEY: "e2b_00ff", ...env };
  const child = spawn(program, [join(import.meta.dirname, file), ...rest], {
    env: { ...process.env, ...variables },
    stdio: ["ignore", "pipe", "inherit"],
    timeout: SCENARIO_MS,
  });
  const lines: ScenarioLine[] = [];
  createInterface(child.stdout).on("line", (text) => {
    const line = JSON.parse(text) as ScenarioLine;
    lines.push(line);
    onLine(line);
  });
  const code = await new Promise<number | null>((resolve) => child.once("close", resolve));
  if (code !== 0) lines.push({ step: "the program itself", result: "failed", message: `it ended with ${code}` });
  return lines;
}
