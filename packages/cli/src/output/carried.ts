import type { Carried } from "@sandboxer/protocol";
import { formatBytes } from "./bytes.ts";
import { formatFields } from "./table.ts";

export function formatCarried(carried: Carried): string {
  const { notes, backends, secrets } = carried;
  return formatFields({
    snapshot: carried.snapshot_id,
    kind: carried.kind,
    from: carried.from,
    backend: carried.backend,
    loadable: carried.loadable ? "yes" : "no",
    reason: carried.why_not,
    "restorable on": backends.join(", "),
    memory: carried.memory,
    processes: carried.processes,
    files: filesIn(carried),
    "hard links": counted(carried.hard_links),
    xattrs: counted(carried.xattrs),
    env: "yes",
    secrets: secrets.join(" "),
    network: carried.network,
    limits: carried.limits,
    notes: notes.join(" "),
  });
}

/** In one line: `memory: lost, files: 1,204 (3.1 MiB), env: yes`; for hard links and attributes, only losses. */
export function sayCarried(carried: Carried): string {
  const { memory, hard_links: links, xattrs } = carried;
  const lost = [
    ...((links?.lost ?? 0) > 0 ? [`hard links: ${counted(links)}`] : []),
    ...((xattrs?.lost ?? 0) > 0 ? [`xattrs: ${counted(xattrs)}`] : []),
  ];
  return [`memory: ${memory}`, `files: ${filesIn(carried)}`, ...lost, "env: yes"].join(", ");
}

function counted(count: Carried["xattrs"] | undefined): string | null {
  if (count == null) return null;
  const { kept, lost } = count;
  if (lost === 0) return kept === 0 ? "none" : `${kept.toLocaleString("en-US")} kept`;
  const words = `${lost.toLocaleString("en-US")} lost`;
  return kept === 0 ? words : `${kept.toLocaleString("en-US")} kept, ${words}`;
}

function filesIn({ files: { scope, count, bytes, truncated } }: Carried): string {
  if (scope === "none") return "at the provider";
  const where = scope === "workspace" ? " of the workspace" : "";
  if (count === null) return scope === "workspace" ? "the workspace" : "all";
  const size = bytes === null ? "" : ` (${formatBytes(bytes)})`;
  return `${count.toLocaleString("en-US")}${truncated ? " and more" : ""}${where}${size}`;
}
