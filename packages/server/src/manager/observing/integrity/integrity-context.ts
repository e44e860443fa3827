import { SandboxerError } from "@sandboxer/protocol";
import type { ImageStore } from "../../../checkpoints/image-store.ts";
import type { ScrubRecords } from "../../../checkpoints/scrub/scrub-records.ts";

export interface ScrubSettings {
  /** Undefined: the server does not do it by itself. */
  readonly everyMs?: number | undefined;
  /** Undefined: no limit. */
  readonly rateMb?: number | undefined;
}

/** What a look at all that is stored needs besides what saves and restores do. */
export interface IntegrityStore {
  readonly images: ImageStore;
  readonly records: ScrubRecords;
}

/** What has a store that can be looked at, where the server is set so. */
interface IntegrityContext {
  readonly durable: { readonly saves: boolean; readonly integrity?: IntegrityStore | undefined };
}

export function integrityOf({ durable }: IntegrityContext): IntegrityStore {
  if (durable.integrity !== undefined) return durable.integrity;
  if (!durable.saves) throw new SandboxerError("checkpoint_disabled", "Checkpointing is not enabled on the server.");
  throw new SandboxerError("not_supported", "This server cannot check its store.");
}
