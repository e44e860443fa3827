import type { SnapshotRecord } from "@sandboxer/client";
import { formatBytes } from "../format/bytes.ts";
import { formatSeconds } from "../format/duration.ts";
import { shortId } from "../format/names.ts";

/** The display name. */
export function snapshotTitle({ name, id }: Pick<SnapshotRecord, "name" | "id">): string {
  return name ?? shortId(id);
}

/** In one line, for a list of choices. */
export function snapshotLine(snapshot: SnapshotRecord): string {
  const seconds = (Date.now() - Date.parse(snapshot.createdAt)) / 1_000;
  return `${snapshotTitle(snapshot)} · ${snapshot.mode} · ${formatBytes(snapshot.sizeBytes)} · ${formatSeconds(seconds)} ago`;
}
