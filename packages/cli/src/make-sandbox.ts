import { operate } from "./operate.ts";
import { readCreateOptions } from "./options/sandbox.ts";
import type { Run } from "./run.ts";

/** Creates a sandbox from the options; with a key, uses the existing one. */
export async function makeSandbox(run: Run) {
  const { key, ...body } = readCreateOptions(run);
  if (key === undefined) return { ...(await operate(run, "createSandbox", { body })), tier: "fresh" as const };
  return operate(run, "acquireSandbox", { body: { ...body, key } });
}
