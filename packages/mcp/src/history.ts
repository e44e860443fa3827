import type { SandboxCalls, Transport } from "@sandboxer/client/transport";
import type { SandboxRecord, SnapshotInfo } from "@sandboxer/protocol";
import { z } from "zod";

export const checkpointSchema = z.object({
  checkpoint_id: z.string(),
  name: z.string().nullable(),
  note: z.string().nullable(),
  sandbox_id: z.string().describe("The sandbox whose state it has."),
  parent: z.string().nullable().describe("The checkpoint that this one descends from."),
  created_at: z.string(),
  size_bytes: z.number().int(),
  state: z.enum(["ready", "damaged", "missing"]),
});
export type Checkpoint = z.infer<typeof checkpointSchema>;

/** The label of a snapshot that keeps the note of a checkpoint. */
export const NOTE_LABEL = "note";
/** How far back the origins of a forked sandbox are followed. */
const MAX_ANCESTORS = 100;

export interface History {
  /** The checkpoint that the sandbox was created from or rewound to. */
  readonly based_on: string | null;
  /** Oldest first. */
  readonly checkpoints: readonly Checkpoint[];
}

export function shownCheckpoint(record: SnapshotInfo): Checkpoint {
  const { id, name, labels, sandbox_id, parent, created_at, size_bytes, state } = record;
  const note = labels[NOTE_LABEL] ?? null;
  return { checkpoint_id: id, name, note, sandbox_id, parent, created_at, size_bytes, state };
}

/** The checkpoints of a sandbox, and those that it descends from. */
export async function historyOf(transport: Transport, sandboxId: string, signal: AbortSignal): Promise<History> {
  const { origin }: SandboxRecord = await transport.call("getSandbox", { params: { id: sandboxId } }, { signal });
  const found = new Map<string, SnapshotInfo>();
  for (let cursor: string | null | undefined; cursor !== null;) {
    const query = { sandbox_id: sandboxId, ...(cursor === undefined ? {} : { cursor }) };
    const page = await transport.call("listSnapshots", { query }, { signal });
    for (const record of page.items) found.set(record.id, record);
    cursor = page.next_cursor;
  }
  const wanted = [origin.snapshot_id, ...[...found.values()].map(({ parent }) => parent)];
  for (let count = 0; count < MAX_ANCESTORS; count += 1) {
    const next = wanted.find((id) => id !== null && !found.has(id));
    if (next === undefined || next === null) break;
    wanted.splice(wanted.indexOf(next), 1);
    // A deleted one has no record any more.
    const record = await transport.call("getSnapshot", { params: { id: next } }, { signal }).catch(() => undefined);
    if (record === undefined) continue;
    found.set(record.id, record);
    wanted.push(record.parent);
  }
  const checkpoints = [...found.values()].map(shownCheckpoint);
  return {
    based_on: origin.snapshot_id,
    checkpoints: checkpoints.toSorted((one, other) => one.created_at.localeCompare(other.created_at)),
  };
}

/** The tree as text, with the sandbox's present place in it. */
export function drawHistory({ based_on, checkpoints }: History): string {
  const ids = new Set(checkpoints.map(({ checkpoint_id }) => checkpoint_id));
  const isTop = ({ parent }: Checkpoint): boolean => parent === null || !ids.has(parent);
  const draw = (one: Checkpoint, indent: string): string[] => {
    const { checkpoint_id: id, name, note, created_at, size_bytes, state } = one;
    const problem = state === "ready" ? "" : ` ${state}`;
    const here = id === based_on ? "  <- the sandbox continues from here" : "";
    const line = `${indent}${name ?? id}${name === null ? "" : ` (${id})`} ${created_at} ${size_bytes} bytes${problem}`;
    const children = checkpoints.filter(({ parent, checkpoint_id }) => parent === id && checkpoint_id !== id);
    return [
      `${line}${note === null ? "" : `: ${note}`}${here}`,
      ...children.flatMap((child) => draw(child, `${indent}  `)),
    ];
  };
  if (checkpoints.length === 0) return "No checkpoints yet. Take one with checkpoint.";
  return checkpoints
    .filter(isTop)
    .flatMap((top) => draw(top, ""))
    .join("\n");
}

/** Takes a snapshot of a sandbox, which keeps running. */
export async function takeCheckpoint(
  calls: SandboxCalls,
  { name, note }: { readonly name?: string | undefined; readonly note?: string | undefined },
  options: { readonly signal: AbortSignal; readonly idempotencyKey?: string },
): Promise<Checkpoint> {
  const body = {
    ...(name === undefined ? {} : { name }),
    ...(note === undefined ? {} : { labels: { [NOTE_LABEL]: note } }),
  };
  const record = await calls.call("createSnapshot", { params: { id: calls.sandboxId }, body }, options);
  return shownCheckpoint(record);
}
