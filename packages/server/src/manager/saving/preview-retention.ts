import { AS_SERVER_SAYS, parseKeep } from "@sandboxer/protocol";
import type { Keep, QueryOf, RetentionPreview, Routes } from "@sandboxer/protocol";
import { checkpointKey } from "../../checkpoints/checkpoint-names.ts";
import { imageKey, type StoredSnapshot } from "../../checkpoints/snapshot-record.ts";
import type { CallOptions } from "../../support/call-options.ts";
import type { ProofContext } from "../room-contexts.ts";
import { readDescendants } from "../snapshots/lineage.ts";
import { notFound } from "../not-found.ts";
import { oldSnapshots } from "./retention.ts";

/** Shows which saved states of a sandbox the rules would remove, and their size; removes nothing. */
export async function previewRetention(
  context: ProofContext,
  sandboxId: string,
  rules: QueryOf<Routes["previewRetention"]>,
  options: CallOptions = {},
): Promise<RetentionPreview> {
  const { durable } = context;
  const head = await context.storedHead(sandboxId);
  if (head === undefined || head.state === "deleted") throw notFound(sandboxId);
  // A live sandbox has the newest record.
  const own = (context.sandboxes.get(sandboxId)?.facts.about ?? head.about)?.retention;
  const checkpoints = ruled(rules.keep_checkpoints, own?.checkpoints) ?? durable.retention.checkpoints;
  const snapshots = ruled(rules.keep_snapshots, own?.snapshots) ?? durable.retention.snapshots;

  const newest = head.checkpoint?.name;
  const images =
    newest === undefined ? { kept: [], going: [] } : await durable.checkpoints.judge(sandboxId, newest, checkpoints);
  const captured = await snapshotsOf(context, sandboxId, snapshots);
  const goingKeys = [
    ...images.going.map(({ name }) => checkpointKey(sandboxId, name)),
    ...captured.going.map(({ id }) => imageKey(id)),
  ];
  return {
    retention: { checkpoints, ...(snapshots === undefined ? {} : { snapshots }) },
    checkpoints: {
      kept: images.kept.length,
      going: images.going.map(({ name, ms }) => ({ name, created_at: new Date(ms).toISOString() })),
    },
    snapshots: {
      ...captured.counts,
      going: captured.going.map(({ id, created_at }) => ({ name: id, created_at })),
    },
    freed_bytes: await durable.checkpoints.freedBytes(goingKeys, options),
  };
}

function ruled(text: string | undefined, own: Keep | undefined): Keep | undefined {
  if (text === undefined) return own;
  return text === AS_SERVER_SAYS ? undefined : parseKeep(text);
}

interface JudgedSnapshots {
  readonly going: readonly StoredSnapshot[];
  readonly counts: Pick<RetentionPreview["snapshots"], "kept" | "named" | "pinned" | "in_use">;
}

async function snapshotsOf(context: ProofContext, sandboxId: string, keep: Keep | undefined): Promise<JudgedSnapshots> {
  const all = (await context.snapshots.list()).filter((each) => each.sandbox_id === sandboxId);
  const old = keep === undefined ? [] : oldSnapshots(all, keep);
  const descendants = old.length === 0 ? new Map<string, never>() : await readDescendants(context);
  const isNeeded = ({ id }: StoredSnapshot): boolean =>
    (descendants.get(id) ?? []).some(({ needs }) => needs !== undefined);
  const going = old.filter((each) => !isNeeded(each));
  return {
    going,
    counts: {
      kept: all.length - going.length,
      named: all.filter(({ name }) => name !== null).length,
      pinned: all.filter(({ pinned }) => pinned === true).length,
      in_use: old.length - going.length,
    },
  };
}
