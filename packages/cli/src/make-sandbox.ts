import { operate } from "./operate.ts";
import { readCreateOptions } from "./options/sandbox.ts";
import type { Run } from "./run.ts";

/** A new sandbox as the options say; with a key, the one that has it if there is one. */
export async function makeSandbox(run: Run) {
  const { key, ...body } = readCreateOptions(run);
  if (key === undefined) return { ...(await operate(run, "createSandbox", { body })), tier: "fresh" as const };
  return operate(run, "acquireSandbox", { body: { ...body, key } });
}
