import { SandboxerError } from "@sandboxer/protocol";
import type { ObjectStore } from "../store/store.ts";
import { readEnvelope } from "./block-image/open-block-image.ts";
import type { Envelope } from "./block-image/envelope.ts";
import type { Footer } from "./image-format.ts";
import { readFooter } from "./open-image.ts";
import { readCondemned } from "./packs/condemned.ts";
import { readBack, type Sum, summing } from "./read-back.ts";

/** What an image says of itself to who cannot open it; those of format 1 have no envelope. */
export async function readAnyEnvelope(
  store: ObjectStore,
  key: string,
): Promise<{ readonly sizeBytes: number; readonly footer: Footer; readonly envelope: Envelope | undefined }> {
  const { sizeBytes, tail, footer } = await readFooter(store, key);
  const envelope = footer.format === 1 ? undefined : await readEnvelope(store, key, footer, { sizeBytes, tail });
  return { sizeBytes, footer, envelope };
}

/** Copies a blob and reads it back; false when the name is taken. */
export async function copyBlob(from: ObjectStore, fromKey: string, to: ObjectStore, toKey: string): Promise<boolean> {
  const sum: Sum = { crc: 0, sizeBytes: 0 };
  const { outcome } = await to.write(toKey, summing(from.read(fromKey), sum), { ifAbsent: true });
  if (outcome === "conflict") return false;
  await readBack(to, toKey, sum, undefined);
  return true;
}

/** To be asked after the packs were pinned: what a collection has condemned before may go, though it is there now. */
export async function refuseCondemned(store: ObjectStore, packs: readonly { readonly id: string }[]): Promise<void> {
  const ids = new Set(packs.map(({ id }) => id));
  const condemned = (await readCondemned(store)).some((each) => each.packs?.some((id) => ids.has(id)) ?? true);
  if (ids.size === 0 || !condemned) return;
  throw new SandboxerError("checkpoint_failed", "A collection is about to remove parts of this image from the store.", {
    hint: "It is copied again when the collection has ended.",
  });
}
