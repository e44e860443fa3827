import type { SandboxManager } from "../../../manager/sandbox-manager.ts";
import type { SharedRecords } from "../../access/shared-records.ts";
import type { PeerSecret } from "../../access/peer-secret.ts";
import { Placement } from "../placement.ts";
import { SharedCalls } from "../shared-calls.ts";
import { StoredOperations } from "../stored-operations.ts";
import type { Service } from "../handler.ts";
import { filesHandlers } from "./files.ts";
import { imagesHandlers } from "./images.ts";
import { interpreterHandlers } from "./interpreter.ts";
import { portsHandlers, type PreviewLinks } from "./ports.ts";
import { processesHandlers } from "./processes.ts";
import { sandboxesHandlers } from "./sandboxes.ts";
import { snapshotsHandlers } from "./snapshots.ts";
import { systemHandlers, type ServerFacts } from "./system.ts";

/** State that the servers of a store share, besides sandboxes. */
export interface SharedState {
  readonly records: SharedRecords;
  readonly secret: PeerSecret;
  /** A record could not be written; other servers will not know it. */
  readonly onFailure: (error: unknown) => void;
}

export interface ServiceFacts extends ServerFacts, PreviewLinks {
  /** Undefined: no store is configured. */
  readonly shared: SharedState | undefined;
}

/** The handler of each route: calls of the manager, translated. */
export function createService(manager: SandboxManager, facts: ServiceFacts): Service {
  const { shared } = facts;
  const storedOperations = shared === undefined ? undefined : new StoredOperations(shared.records, shared.secret);
  const placement = shared === undefined ? undefined : new Placement(manager.placing, shared.secret);
  const handlers = {
    ...sandboxesHandlers(manager),
    ...processesHandlers(manager),
    ...interpreterHandlers(manager),
    ...filesHandlers(manager),
    ...portsHandlers(manager, facts),
    ...snapshotsHandlers(manager, placement),
    ...imagesHandlers(manager),
    ...systemHandlers(manager, { ...facts, storedOperations }),
  };
  const sharedCalls =
    shared === undefined
      ? undefined
      : new SharedCalls({
          ...shared,
          instanceId: () => manager.instanceId,
          isAlive: async (instanceId) => !(await manager.isDead(instanceId)),
        });
  return {
    handlers,
    placement,
    sharedCalls,
    storedOperations,
    onRecordFailure: (error) => shared?.onFailure(error),
    epochOf: (sandboxId) => manager.epochOf(sandboxId),
    whyNotHere: (sandboxId) =>
      manager.running(sandboxId).then(
        () => undefined,
        (error: unknown) => error,
      ),
    ownerElsewhere: (sandboxId) => manager.ownerElsewhere(sandboxId),
    untilArrived: (sandboxId, signal) => manager.untilArrived(sandboxId, signal),
    isKnownDead: (instanceId) => manager.isKnownDead(instanceId),
    otherServer: (instanceId) => manager.otherServer(instanceId),
    openOperation: (kind, subject, callerId) => manager.operations.open(kind, subject, callerId),
  };
}
