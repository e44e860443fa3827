import { asSandboxerError, type Head } from "@sandboxer/protocol";
import { checkpointKey, checkpointsFolder, removalMarkName } from "../checkpoints/checkpoint-names.ts";
import { headKey, leavesNothing, readStoredRecord } from "../lease/stored-head.ts";
import { type CollectionContext, type Findings, leftAlone, type LeftReason } from "./garbage.ts";
import { parkForDeadOwner } from "./park-head.ts";
import { isStoreFailure } from "../support/record-damage.ts";
import { type CheckpointFile, garbageOfSandbox, type SandboxGarbage } from "./sandbox-garbage.ts";
import type { Servers } from "./servers.ts";
import { imageOf, type Survey } from "./survey.ts";

const MARK_TEXT = "An image of this number was removed. Later ones have greater numbers.\n";

/**
 * Collects unreferenced data of one sandbox, while nobody can publish for it. The head, which every publication must
 * swap, shows that; it is read before the images, and must be unchanged right before the removal. A server that claims
 * the sandbox later finds the images or the mark, and gives its own image another name.
 */
export async function collectSandbox(
  context: CollectionContext,
  sandboxId: string,
  { servers, survey }: { readonly servers: Servers; readonly survey: Survey },
): Promise<Findings> {
  const present = await readHeadOf(context, sandboxId);
  if ("reason" in present) return leftAlone(present.object ?? sandboxId, present.reason);
  const { head } = present;
  const { owner } = head;
  if (owner !== null && !servers.dead.has(owner)) {
    const known = servers.living.has(owner);
    return leftAlone(sandboxId, known ? "owned by a living server" : "owned by a server without a record");
  }
  if (head.state !== "deleted" && leavesNothing(head)) return collectLost(context, sandboxId, present);
  const found = garbageOfSandbox(head, await filesOf(context, sandboxId), {
    keep: head.about?.retention?.checkpoints ?? context.keep.checkpoints,
    isReferenced: (name) => survey.referencedImages.has(imageOf(sandboxId, name)),
  });
  if (found === undefined) return leftAlone(sandboxId, "the image that its head names is missing");
  if (context.apply && found.files.length > 0) {
    const removed = await remove(context, sandboxId, present, found);
    if (!removed) return leftAlone(sandboxId, "claimed by a server meanwhile");
  }
  const garbage = found.files.map(({ kind, name, sizeBytes }) => {
    return { kind, key: checkpointKey(sandboxId, name), sizeBytes };
  });
  return { garbage, left: [] };
}

/** The sandbox cannot be restored, so its head need not say that it is deleted. */
async function collectLost(context: CollectionContext, sandboxId: string, present: PresentHead): Promise<Findings> {
  const { store, apply } = context;
  const { owner } = present.head;
  const key = headKey(sandboxId);
  let sizeBytes = 0;
  for await (const object of store.list(sandboxId)) if (object.key === key) sizeBytes = object.sizeBytes;
  if (apply) {
    const version = owner === null ? present.version : await parkForDeadOwner(context, sandboxId, present, owner);
    if (version === undefined) return leftAlone(sandboxId, "claimed by a server meanwhile");
    await store.deleteTree(sandboxId);
  }
  return { garbage: [{ kind: "lost-sandbox", key, sizeBytes }], left: [] };
}

interface PresentHead {
  readonly head: Head;
  readonly version: string;
}

async function readHeadOf(
  { store }: CollectionContext,
  sandboxId: string,
): Promise<PresentHead | { readonly reason: LeftReason; readonly object?: string }> {
  try {
    const record = await readStoredRecord(store, sandboxId);
    if (record === undefined || !("head" in record.stored)) return { reason: "without a head" };
    return { head: record.stored.head, version: record.version };
  } catch (error) {
    if (isStoreFailure(error)) throw error;
    const { object } = asSandboxerError(error).details;
    return { reason: "its head cannot be read", object: typeof object === "string" ? object : headKey(sandboxId) };
  }
}

async function filesOf({ store }: CollectionContext, sandboxId: string): Promise<readonly CheckpointFile[]> {
  const folder = checkpointsFolder(sandboxId);
  const files: CheckpointFile[] = [];
  for await (const { key, sizeBytes } of store.list(folder))
    files.push({ name: key.slice(folder.length + 1), sizeBytes });
  return files;
}

/** False if a server has claimed the sandbox by now; then nothing was removed. */
async function remove(
  context: CollectionContext,
  sandboxId: string,
  present: PresentHead,
  { files, markMs }: SandboxGarbage,
): Promise<boolean> {
  const { store, signal } = context;
  const { owner } = present.head;
  const version = owner === null ? present.version : await parkForDeadOwner(context, sandboxId, present, owner);
  if (version === undefined) return false;
  if (markMs !== undefined) await store.writeText(checkpointKey(sandboxId, removalMarkName(markMs)), MARK_TEXT);
  const last = await store.readCell(headKey(sandboxId));
  if (last?.version !== version) return false;
  for (const { name } of files) {
    signal?.throwIfAborted();
    await store.delete(checkpointKey(sandboxId, name));
  }
  return true;
}
