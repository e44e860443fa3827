import type { SandboxManager } from "../../../manager/sandbox-manager.ts";
import type { Service } from "../handler.ts";
import { filesHandlers } from "./files.ts";
import { imagesHandlers } from "./images.ts";
import { interpreterHandlers } from "./interpreter.ts";
import { portsHandlers, type PreviewLinks } from "./ports.ts";
import { processesHandlers } from "./processes.ts";
import { sandboxesHandlers } from "./sandboxes.ts";
import { snapshotsHandlers } from "./snapshots.ts";
import { systemHandlers, type ServerFacts } from "./system.ts";

/** The handler of each route: calls of the manager, translated. */
export function createService(manager: SandboxManager, facts: ServerFacts & PreviewLinks): Service {
  const handlers = {
    ...sandboxesHandlers(manager),
    ...processesHandlers(manager),
    ...interpreterHandlers(manager),
    ...filesHandlers(manager),
    ...portsHandlers(manager, facts),
    ...snapshotsHandlers(manager),
    ...imagesHandlers(manager),
    ...systemHandlers(manager, facts),
  };
  return {
    handlers,
    epochOf: (sandboxId) => manager.epochOf(sandboxId),
    whyNotHere: (sandboxId) =>
      manager.running(sandboxId).then(
        () => undefined,
        (error: unknown) => error,
      ),
    ownerElsewhere: (sandboxId) => manager.ownerElsewhere(sandboxId),
    otherServer: (instanceId) => manager.otherServer(instanceId),
    openOperation: (kind, subject, callerId) => manager.operations.open(kind, subject, callerId),
  };
}
