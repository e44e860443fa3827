import { SandboxerError } from "@sandboxer/protocol";
import type { ImageStore } from "../../../checkpoints/image-store.ts";
import type { ScrubRecords } from "../../../checkpoints/scrub/scrub-records.ts";

export interface ScrubSettings {
  /** Undefined: the server does not scrub automatically. */
  readonly everyMs?: number | undefined;
  /** Undefined: no limit. */
  readonly rateMb?: number | undefined;
}

/** Services that a scrub needs besides those of saves and restores. */
export interface IntegrityStore {
  readonly images: ImageStore;
  readonly records: ScrubRecords;
}

/** The context of a server whose store can be checked. */
interface IntegrityContext {
  readonly durable: { readonly saves: boolean; readonly integrity?: IntegrityStore | undefined };
}

export function integrityOf({ durable }: IntegrityContext): IntegrityStore {
  if (durable.integrity !== undefined) return durable.integrity;
  if (!durable.saves) throw new SandboxerError("checkpoint_disabled", "Checkpointing is not enabled on the server.");
  throw new SandboxerError("not_supported", "This server cannot check its store.");
}
