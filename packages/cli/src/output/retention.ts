import type { RetentionPreview } from "@sandboxer/protocol";
import { formatBytes } from "./bytes.ts";
import { formatTable } from "./table.ts";

/** Shows what a rule would remove, and what is kept regardless. */
export function formatRetentionPreview({ checkpoints, snapshots, freed_bytes: freed }: RetentionPreview): string {
  const going = [
    ...checkpoints.going.map(({ name, created_at }) => ["checkpoint", name, created_at]),
    ...snapshots.going.map(({ name, created_at }) => ["snapshot", name, created_at]),
  ];
  const table = going.length === 0 ? "" : `${formatTable([["removed", "name", "saved"], ...going])}\n`;
  const kept = `${checkpoints.kept} checkpoints and ${snapshots.kept} snapshots are kept${reasons(snapshots)}.`;
  const bytes =
    going.length === 0 ? "Nothing would be removed." : `${formatBytes(freed)} would be freed at the next save.`;
  return `${table}${kept} ${bytes} Nothing was changed.\n`;
}

function reasons({ named, pinned, in_use: needed }: RetentionPreview["snapshots"]): string {
  const counts = [`${named} named`, `${pinned} pinned`, `${needed} in use`].filter((text) => !text.startsWith("0 "));
  return counts.length === 0 ? "" : ` (snapshots: ${counts.join(", ")})`;
}
