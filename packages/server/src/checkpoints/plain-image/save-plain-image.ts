import { SandboxerError } from "@sandboxer/protocol";
import type { SnapshotPayload } from "../../backends/backend.ts";
import type { ObjectStore } from "../../store/store.ts";
import type { CallOptions } from "../../support/call-options.ts";
import { openImage } from "../open-image.ts";
import type { ImageLabel } from "../image-context.ts";
import { ImagePacker } from "./image-packer.ts";

/**
 * Writes an image of format 1 under a key that is free, and reads back its size, footer and manifest. The members' bytes
 * are not read again: they were hashed on their way out, and a load checks them.
 */
export async function savePlainImage(
  store: ObjectStore,
  key: string,
  state: SnapshotPayload,
  label: ImageLabel,
  options: CallOptions,
): Promise<{ readonly sha256: string; readonly sizeBytes: number; readonly addedBytes: number } | "conflict"> {
  const packer = new ImagePacker(state, label, options);
  const written = await store.write(key, packer.chunks(), {
    ifAbsent: true,
    ...(options.signal === undefined ? {} : { signal: options.signal }),
  });
  if (written.outcome === "conflict") return "conflict";
  const { manifestSha256, sizeBytes } = packer.packed;
  const stored = await openImage(store, key);
  if (stored.sizeBytes !== sizeBytes || stored.manifestSha256 !== manifestSha256) {
    throw new SandboxerError("checkpoint_failed", `The image ${key} reads back differently from what was written.`);
  }
  return { sha256: manifestSha256, sizeBytes, addedBytes: sizeBytes };
}
