import type { SnapshotRecord } from "@sandboxer/client";
import { formatBytes } from "../format/bytes.ts";
import { formatSeconds } from "../format/duration.ts";
import { shortId } from "../format/names.ts";

/** What a person calls it. */
export function snapshotTitle({ name, id }: Pick<SnapshotRecord, "name" | "id">): string {
  return name ?? shortId(id);
}

/** In one line, for a list to choose from. */
export function snapshotLine(snapshot: SnapshotRecord): string {
  const seconds = (Date.now() - Date.parse(snapshot.createdAt)) / 1_000;
  return `${snapshotTitle(snapshot)} · ${snapshot.mode} · ${formatBytes(snapshot.sizeBytes)} · ${formatSeconds(seconds)} ago`;
}
