import { formatBytes } from "./bytes.ts";

/** How much of what was stored goes, and how much stays because others use it. */
export function formatRemovedBytes(bytes: { readonly removed_bytes: number; readonly shared_bytes: number }): string {
  const freed = `${formatBytes(bytes.removed_bytes)} freed.`;
  if (bytes.shared_bytes === 0) return freed;
  return `${freed} ${formatBytes(bytes.shared_bytes)} are shared with other sandboxes or snapshots and are removed when nothing uses them.`;
}
