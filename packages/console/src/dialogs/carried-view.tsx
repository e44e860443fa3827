import type { Carried } from "@sandboxer/client";
import type { JSX } from "preact";
import { formatBytes } from "../format/bytes.ts";

interface Row {
  readonly what: string;
  readonly kept: boolean;
  readonly details: string;
}

/** Lists the parts of the captured sandbox that a new one keeps and loses. */
export function CarriedView({ carried }: { readonly carried: Carried }): JSX.Element {
  return (
    <>
      <dl class="carried" aria-label="Kept and lost">
        {rowsOf(carried).map(({ what, kept, details }) => (
          <div key={what}>
            <dt>{what}</dt>
            <dd>
              <span class={`chip chip-${kept ? "running" : "failed"}`}>{kept ? "kept" : "lost"}</span>
            </dd>
            <dd>{details}</dd>
          </div>
        ))}
      </dl>
      {carried.notes.length === 0 ? null : (
        <ul class="hint">
          {carried.notes.map((note) => (
            <li key={note}>{note}</li>
          ))}
        </ul>
      )}
    </>
  );
}

function rowsOf(carried: Carried): Row[] {
  const { memory, processes, secrets, network, limits } = carried;
  return [
    { what: "Memory", kept: memory === "kept", details: "" },
    { what: "Processes", kept: processes === "kept", details: "" },
    { what: "Files", kept: carried.files.scope !== "none", details: filesIn(carried.files) },
    ...counted("Hard links", carried.hardLinks),
    ...counted("Attributes", carried.xattrs),
    { what: "Environment", kept: true, details: "" },
    ...(secrets.length === 0
      ? []
      : [{ what: "Secrets", kept: true, details: `resolved again: ${secrets.join(", ")}` }]),
    ...(network === "none"
      ? []
      : [{ what: "Network", kept: network === "kept", details: network === "kept" ? "" : network }]),
    ...(limits === "none"
      ? []
      : [{ what: "Limits", kept: limits === "kept", details: limits === "kept" ? "" : limits }]),
  ];
}

/** An older server does not report it. */
function counted(what: string, count: Carried["xattrs"] | undefined): Row[] {
  if (count == null || (count.kept === 0 && count.lost === 0)) return [];
  return [
    {
      what,
      kept: count.lost === 0,
      details: `${count.kept.toLocaleString()} kept, ${count.lost.toLocaleString()} lost`,
    },
  ];
}

function filesIn({ scope, count, bytes, truncated }: Carried["files"]): string {
  if (scope === "none") return "at the provider";
  const all = scope === "workspace" ? "workspace only" : "all";
  if (count === null) return all;
  const size = bytes === null ? "" : `, ${formatBytes(bytes)}`;
  return `${all}: ${count.toLocaleString()}${truncated ? " and more" : ""}${size}`;
}
