import type { Findings, Garbage, GarbageKind, GarbageReport } from "@sandboxer/server/garbage";
import { formatBytes } from "./bytes.ts";
import { formatTable, visible } from "./table.ts";

const NAMES: Readonly<Record<GarbageKind, string>> = {
  destroyed: "data of deleted sandboxes",
  "lost-sandbox": "sandboxes that died with their server",
  unpublished: "unpublished checkpoints",
  "past-retention": "checkpoints beyond retention",
  "removal-mark": "markers of removed checkpoints",
  snapshot: "snapshots that are unfinished or lost their name",
  "old-snapshot": "snapshots beyond retention",
  pack: "unused packs of blocks",
  pin: "unfinished saves of dead servers",
  verdict: "leftovers of interrupted collections",
  "data-key": "data keys of deleted sandboxes and snapshots",
  "server-record": "records of dead servers",
  bell: "notification files of dead servers",
  probe: "leftovers of store tests",
};

export interface GarbageSum {
  readonly count: number;
  readonly bytes: number;
}

export interface GarbageSummary {
  readonly total: GarbageSum;
  readonly kinds: Readonly<Record<GarbageKind, GarbageSum>>;
}

export function summarize({ garbage }: Findings): GarbageSummary {
  const kinds = Object.keys(NAMES) as GarbageKind[];
  const sums = kinds.map((kind) => [kind, sumOf(garbage.filter((item) => item.kind === kind))] as const);
  return { total: sumOf(garbage), kinds: Object.fromEntries(sums) as GarbageSummary["kinds"] };
}

export function formatFindings(
  { left, damaged }: GarbageReport,
  { total, kinds }: GarbageSummary,
  applied: boolean,
): string {
  const rows = Object.entries(kinds)
    .filter(([, { count }]) => count > 0)
    .map(([kind, { count, bytes }]) => [NAMES[kind as GarbageKind], `${count}`, formatBytes(bytes)]);
  const table = total.count === 0 ? "" : `${formatTable([["what", "count", "size"], ...rows])}\n`;
  return `${table}${verdict(total, applied)}\n${formatLeft(left)}${formatDamaged(damaged)}`;
}

function verdict({ count, bytes }: GarbageSum, applied: boolean): string {
  if (count === 0) return "Nothing to remove.";
  if (applied) return `${formatBytes(bytes)} freed.`;
  return `${formatBytes(bytes)} can be freed. Nothing was changed. Run the command again with --apply to remove this.`;
}

function formatLeft(left: Findings["left"]): string {
  const byReason = Map.groupBy(left, ({ reason }) => reason);
  const rows = [...byReason].map(([reason, items]) => [`  ${items.length}`, reason]);
  return rows.length === 0 ? "" : `Not removed:\n${formatTable(rows)}`;
}

function formatDamaged(damaged: readonly string[]): string {
  if (damaged.length === 0) return "";
  const title = "Damaged; restore these from a backup (docs/guides/damaged-records.md):";
  return `${title}\n${damaged.map((object) => `  ${visible(object)}\n`).join("")}`;
}

function sumOf(items: readonly Garbage[]): GarbageSum {
  return { count: items.length, bytes: items.reduce((sum, { sizeBytes }) => sum + sizeBytes, 0) };
}
