import { execFile } from "node:child_process";
import { promisify } from "node:util";

/**
 * Whether the kernel makes folders read-only with all that is mounted in them: Linux 5.12 or newer. Without that there
 * is no root inside, because engines let root write to folders of the host.
 */
export async function canSeal(agentPath: string): Promise<boolean> {
  return promisify(execFile)(agentPath, ["read-only", "/usr", "--", "true"], { timeout: 10_000 }).then(
    () => true,
    () => false,
  );
}

export const NO_SEAL = "programs cannot run as root inside sandboxes, because that needs Linux 5.12 or newer";
