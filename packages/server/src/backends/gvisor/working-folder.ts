import { errnoOf } from "../agent/agent-error.ts";
import type { AgentFiles } from "../agent/agent-files.ts";
import { SANDBOX_USER, WORKING_FOLDER } from "./oci-spec.ts";

const EEXIST = 17;

/** Root filesystems of others know neither the working folder nor its user. */
export async function prepareWorkingFolder(files: AgentFiles): Promise<void> {
  await files.makeFolder(WORKING_FOLDER, { mode: 0o755 }).catch((error: unknown) => {
    if (errnoOf(error) !== EEXIST) throw error;
  });
  await files.set(WORKING_FOLDER, { owner: SANDBOX_USER });
}
