import { SandboxerError } from "@sandboxer/protocol";
import type { ImageStore } from "../../../checkpoints/image-store.ts";
import type { ScrubRecords } from "../../../checkpoints/scrub/scrub-records.ts";
import type { ManagerContext } from "../../context.ts";

/** What a look at all that is stored needs besides what saves and restores do. */
export interface IntegrityStore {
  readonly images: ImageStore;
  readonly records: ScrubRecords;
}

export function integrityOf({ durable }: Pick<ManagerContext, "durable">): IntegrityStore {
  if (durable.integrity !== undefined) return durable.integrity;
  if (!durable.saves) throw new SandboxerError("checkpoint_disabled", "Checkpointing is not enabled on the server.");
  throw new SandboxerError("not_supported", "This server cannot look at its store.");
}
