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
    "why not": carried.why_not,
    "can be loaded by": backends.join(", "),
    memory: carried.memory,
    processes: carried.processes,
    files: filesIn(carried),
    env: "yes",
    secrets: secrets.join(" "),
    network: carried.network,
    limits: carried.limits,
    notes: notes.join(" "),
  });
}

/** In one line: `memory: lost, files: 1,204 (3.1 MiB), env: yes`. */
export function sayCarried(carried: Carried): string {
  return `memory: ${carried.memory}, files: ${filesIn(carried)}, env: yes`;
}

function filesIn({ files: { scope, count, bytes, truncated } }: Carried): string {
  if (scope === "none") return "where the provider keeps them";
  const where = scope === "workspace" ? " of the workspace" : "";
  if (count === null) return scope === "workspace" ? "the workspace" : "all";
  const size = bytes === null ? "" : ` (${formatBytes(bytes)})`;
  return `${count.toLocaleString("en-US")}${truncated ? " and more" : ""}${where}${size}`;
}
