import { SandboxerError } from "@sandboxer/protocol";
import { WORKING_FOLDER } from "../../agent/user-space.ts";
import type { GvisorSandbox } from "../gvisor-sandbox.ts";

const HOOK = `${WORKING_FOLDER}/.sandboxer/restored`;

/**
 * Ends a fresh sandbox whose files have a program to run after a restore: it would run when the sandbox that was started
 * ahead becomes somebody's, and one that is started for them does not run it.
 */
export async function refuseHook(sandbox: GvisorSandbox): Promise<GvisorSandbox> {
  const found = await sandbox.rootFiles.stat(HOOK).then(
    () => true,
    () => false,
  );
  if (!found) return sandbox;
  await sandbox.destroy();
  throw new SandboxerError("not_supported", `It has ${HOOK}, so none are started ahead of the need.`);
}
