import type { ImageRecord, RemovedImages } from "@sandboxer/protocol";
import { formatBytes } from "./bytes.ts";
import { formatTable, visible } from "./table.ts";
import { formatAge } from "./time.ts";

const DIGITS = 12;

export function formatImages(images: readonly ImageRecord[]): string {
  const rows = images.map((image) => [
    image.digest.replace(/^sha256:/, "").slice(0, DIGITS),
    visible(image.names.join(", ") || "-"),
    formatBytes(image.size_bytes),
    formatAge(image.last_used_at),
    image.in_use ? "yes" : "no",
  ]);
  return formatTable([["DIGEST", "NAME", "SIZE", "USED", "IN USE"], ...rows]);
}

/** The pinned name is what a script needs. */
export function formatPulled({ digest, names }: ImageRecord): string {
  const [name] = names;
  return `${name === undefined ? "" : `${visible(name)} `}${digest}\n`;
}

export function formatRemoved({ removed, freed_bytes }: RemovedImages): string {
  return `${removed.length} ${removed.length === 1 ? "image" : "images"} deleted, ${formatBytes(freed_bytes)} freed\n`;
}
