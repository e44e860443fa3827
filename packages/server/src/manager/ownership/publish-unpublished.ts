import type { Head } from "@sandboxer/protocol";
import type { Unpublished } from "../../checkpoints/unpublished/unpublished-checkpoints.ts";
import type { UnpublishedRecord } from "../../checkpoints/unpublished/unpublished-record.ts";
import type { ManagerContext } from "../context.ts";
import { bringLatestToHead } from "../saving/save.ts";

/** How long an unpublishable checkpoint is kept. */
const SET_ASIDE_MS = 7 * 86_400_000;
/** Interval between attempts to publish checkpoints that the store has not accepted yet. */
const ROUND_MS = 15_000;

export type Publication = "published" | "set aside";

/**
 * Publishes a checkpoint that a server of this machine could not publish, and releases the sandbox. It may only replace
 * the state that it was made from: if another server claimed the sandbox since, that state is newer, and this one is
 * set aside for a person to look at. Throws when the store is unavailable; then it can be tried again.
 */
export async function publishUnpublished(context: ManagerContext, unpublished: Unpublished): Promise<Publication> {
  const { sandbox_id: sandboxId, set_aside: setAside } = unpublished.record;
  if (setAside !== undefined) return "set aside";
  return await context.publishing.run(sandboxId, async () => await publish(context, unpublished));
}

async function publish(context: ManagerContext, unpublished: Unpublished): Promise<Publication> {
  const { ownership } = context.durable;
  const { sandbox_id: sandboxId, owner } = unpublished.record;
  if (ownership.held(sandboxId)?.epoch === owner.epoch && ownership.instanceId === owner.instance_id) {
    return await bringToStore(context, unpublished);
  }
  const head = await ownership.read(sandboxId);
  if (head !== undefined && isSameState(head, unpublished.record)) return await done(context, unpublished);
  if (head?.state === "deleted") return await done(context, unpublished);
  const why = whyNot(head, unpublished.record);
  if (why !== undefined) return await putAside(context, unpublished, why);
  return await claimAndPublish(context, unpublished, head?.owner ?? null, head?.epoch ?? owner.epoch);
}

/** Undefined: no server claimed the sandbox since the state was captured. */
export function whyNot(head: Head | undefined, record: UnpublishedRecord): string | undefined {
  if (head === undefined) return "The store has no such sandbox.";
  const { owner, claiming, replaces } = record;
  const isOld = head.epoch === owner.epoch && (head.owner === null || head.owner === owner.instance_id);
  // A server that died right after it claimed the sandbox in order to publish this checkpoint.
  const isClaimed = claiming !== null && head.owner === claiming && head.epoch === owner.epoch + 1;
  if ((isOld || isClaimed) && (head.checkpoint?.name ?? null) === replaces) return undefined;
  const by = head.owner === null ? "another server" : `the server ${head.owner}`;
  return `The sandbox was claimed by ${by} since then (epoch ${head.epoch}; this state was captured at epoch ${owner.epoch}).`;
}

/** Whether the head names this capture: an attempt of the server that made it arrived after all. */
function isSameState({ checkpoint }: Head, record: UnpublishedRecord): boolean {
  const { created_at, parent } = record.checkpoint;
  return checkpoint !== null && checkpoint.created_at === created_at && checkpoint.parent === parent;
}

async function claimAndPublish(
  context: ManagerContext,
  unpublished: Unpublished,
  presentOwner: string | null,
  presentEpoch: number,
): Promise<Publication> {
  const { ownership, unpublished: local } = context.durable;
  const { sandbox_id: sandboxId, replaces } = unpublished.record;
  // It held the lock of the folder, which this server holds now: no need to wait for its lease.
  if (presentOwner !== null && presentOwner !== ownership.instanceId) await ownership.instances.markDead(presentOwner);
  const claiming = await local.change(unpublished, {
    owner: { instance_id: presentOwner ?? unpublished.record.owner.instance_id, epoch: presentEpoch },
    claiming: ownership.instanceId,
  });
  const claimed = await ownership.claim(sandboxId);
  const holding = { id: sandboxId, epoch: claimed.epoch };
  try {
    if (claimed.epoch !== presentEpoch + 1 || (claimed.checkpoint?.name ?? null) !== replaces) {
      await ownership.release(holding);
      return await putAside(context, claiming, "Another server claimed the sandbox at the same time.");
    }
    const owner = { instance_id: ownership.instanceId, epoch: claimed.epoch };
    return await bringToStore(context, await local.change(claiming, { owner, claiming: null }));
  } catch (error) {
    // It does not run here, and other servers may want it.
    if (ownership.holds(holding))
      context.inBackground("release of a sandbox that was not published", ownership.release(holding));
    throw error;
  }
}

/** For a sandbox that this server owns and does not run. */
async function bringToStore(context: ManagerContext, unpublished: Unpublished): Promise<Publication> {
  const { durable } = context;
  const { ownership, checkpoints, unpublished: local } = durable;
  const { sandbox_id: sandboxId, checkpoint, owner } = unpublished.record;
  const published = await checkpoints.adopt(sandboxId, await local.open(unpublished), checkpoint);
  await ownership.publishAndRelease({ id: sandboxId, epoch: owner.epoch }, published);
  await bringLatestToHead(durable, sandboxId, published.name).catch((error: unknown) => {
    context.options.observer.problem("latest could not be written; the next owner repairs it", { sandboxId, error });
  });
  const { name, size_bytes, parent } = published;
  const data = { name, size_bytes, parent, reason: "saved on this machine while the store was unavailable" };
  context.events.append({ type: "checkpoint.created", sandboxId, data });
  return await done(context, unpublished);
}

async function done({ durable, options }: ManagerContext, unpublished: Unpublished): Promise<"published"> {
  // The next server looks at the leftover again, and finds it published.
  await durable.unpublished.remove(unpublished).catch((error: unknown) => {
    options.observer.problem("a published checkpoint could not be removed from this machine", { error });
  });
  return "published";
}

async function putAside(context: ManagerContext, unpublished: Unpublished, reason: string): Promise<"set aside"> {
  const { clock, observer } = context.options;
  const { sandbox_id: sandboxId } = unpublished.record;
  const at = new Date(clock.wallMs()).toISOString();
  await context.durable.unpublished.change(unpublished, { set_aside: { at, reason } });
  const { folder } = unpublished;
  observer.problem(`a checkpoint of this machine is not published: ${reason}`, { sandboxId, folder });
  return "set aside";
}

/** Before a sandbox is claimed: its newest state may lie on this machine. */
export async function publishBeforeClaim(context: ManagerContext, sandboxId: string): Promise<void> {
  const { unpublished } = context.durable;
  for (const each of await unpublished.of(sandboxId)) {
    if (unpublished.isForThisStore(each)) await publishUnpublished(context, each);
  }
}

/** At the start, and until all are in the store: publishes what ended servers of this machine left. */
export async function publishLeftBehind(context: ManagerContext): Promise<void> {
  const { unpublished } = context.durable;
  const { observer, clock } = context.options;
  for (let round = 1; !context.draining; round++) {
    let failure: unknown;
    let left = 0;
    for (const each of await unpublished.all()) {
      if (context.draining) return;
      const { record, folder } = each;
      if (!unpublished.isForThisStore(each)) {
        const { store, sandbox_id: sandboxId } = record;
        if (round === 1)
          observer.problem("a checkpoint of this machine is for another store", { sandboxId, store, folder });
      } else if (isTooOld(context, each)) await unpublished.remove(each);
      else
        await publishUnpublished(context, each).catch((error: unknown) => {
          failure = error;
          left += 1;
        });
    }
    if (left === 0) return;
    if (round === 1)
      observer.problem("checkpoints of this machine could not be published yet", { left, error: failure });
    await clock.sleep(ROUND_MS, context.ending.signal).catch(() => {});
  }
}

function isTooOld({ options }: ManagerContext, { record }: Unpublished): boolean {
  if (record.set_aside === undefined) return false;
  return options.clock.wallMs() - Date.parse(record.set_aside.at) > SET_ASIDE_MS;
}
