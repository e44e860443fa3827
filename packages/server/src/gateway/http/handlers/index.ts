import type { SandboxManager } from "../../../manager/sandbox-manager.ts";
import type { Handlers } from "../handler.ts";
import { filesHandlers } from "./files.ts";
import { processesHandlers } from "./processes.ts";
import { sandboxesHandlers } from "./sandboxes.ts";
import { snapshotsHandlers } from "./snapshots.ts";
import { systemHandlers } from "./system.ts";

/** What each route does: calls of the manager, translated. */
export function createHandlers(manager: SandboxManager): Partial<Handlers> {
  return {
    ...sandboxesHandlers(manager),
    ...processesHandlers(manager),
    ...filesHandlers(manager),
    ...snapshotsHandlers(manager),
    ...systemHandlers(manager),
  };
}
