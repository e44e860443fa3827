import type { FileEntryRecord } from "@sandboxer/protocol";
import { formatBytes } from "./bytes.ts";
import { formatTable, visible } from "./table.ts";

const KINDS = { file: "-", folder: "d", symlink: "l", other: "?" } as const;

/** As `ls -l` shows them. */
export function formatFiles(entries: readonly FileEntryRecord[]): string {
  return formatTable(
    entries.map((entry) => [
      KINDS[entry.kind] + formatMode(entry.mode),
      `${entry.uid}:${entry.gid}`,
      entry.kind === "file" ? formatBytes(entry.size_bytes) : "-",
      entry.modified_at,
      visible(entry.name) + (entry.link_target === null ? "" : ` -> ${visible(entry.link_target)}`),
    ]),
  );
}

function formatMode(mode: number): string {
  return [6, 3, 0]
    .map((shift) => {
      const bits = (mode >> shift) & 7;
      return (bits & 4 ? "r" : "-") + (bits & 2 ? "w" : "-") + (bits & 1 ? "x" : "-");
    })
    .join("");
}
