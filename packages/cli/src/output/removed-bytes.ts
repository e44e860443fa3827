import { formatBytes } from "./bytes.ts";

/** How many bytes are freed, and how many are kept because others use them. */
export function formatRemovedBytes(bytes: { readonly removed_bytes: number; readonly shared_bytes: number }): string {
  const freed = `${formatBytes(bytes.removed_bytes)} freed.`;
  if (bytes.shared_bytes === 0) return freed;
  return `${freed} ${formatBytes(bytes.shared_bytes)} are shared with other sandboxes or snapshots and are removed when nothing uses them.`;
}
