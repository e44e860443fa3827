import type { SandboxHandle } from "../../backends/backend.ts";
import { Execution, EXECUTION_KEY_PREFIX } from "./execution.ts";

/** The process of the execution that ran, or whose end nobody was told of, when the sandbox was saved. */
export async function adoptExecution(handle: SandboxHandle): Promise<Execution | undefined> {
  const processes = (await handle.processes()).filter((process) => process.key.startsWith(EXECUTION_KEY_PREFIX));
  const last = processes.at(-1);
  return last === undefined ? undefined : new Execution(last);
}
