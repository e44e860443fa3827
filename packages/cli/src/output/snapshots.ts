import type { SnapshotDiff, SnapshotInfo } from "@sandboxer/protocol";
import { formatBytes } from "./bytes.ts";
import { encryptionText } from "./encryption.ts";
import { type Colour, type Paint, paintState } from "./colour.ts";
import { shortId } from "./sandboxes.ts";
import { formatFields, formatTable, visible } from "./table.ts";
import { formatAge } from "./time.ts";

export function formatSnapshots(snapshots: readonly SnapshotInfo[], paint: Paint): string {
  const rows = snapshots.map((snapshot) => [
    shortId(snapshot.id),
    visible(snapshot.name ?? "-"),
    paintState(paint, snapshot.state) + proof(snapshot) + (snapshot.pinned ? " (pinned)" : ""),
    snapshot.mode,
    formatBytes(snapshot.size_bytes),
    formatAge(snapshot.created_at),
    visible(snapshot.sandbox_name ?? shortId(snapshot.sandbox_id)),
  ]);
  return formatTable([["ID", "NAME", "STATE", "MODE", "SIZE", "CREATED", "OF"], ...rows]);
}

function proof({ proven, unproven }: SnapshotInfo): string {
  return proven !== null ? " (proven)" : unproven !== null ? " (not test-restored)" : "";
}

export function formatSnapshot(snapshot: SnapshotInfo): string {
  return formatFields({
    id: snapshot.id,
    name: snapshot.name,
    state: snapshot.state,
    problem: snapshot.problem,
    pinned: snapshot.pinned ? "yes" : "no",
    mode: snapshot.mode,
    kind: snapshot.kind,
    backend: snapshot.backend,
    profile: snapshot.profile,
    size: formatBytes(snapshot.size_bytes),
    created: `${snapshot.created_at} (${formatAge(snapshot.created_at)})`,
    "encrypted with": encryptionText(snapshot.encryption),
    proven: snapshot.proven && `${snapshot.proven.at}, on ${snapshot.proven.engine}`,
    "not test-restored": snapshot.unproven && `${snapshot.unproven.at}: ${snapshot.unproven.reason}`,
    "taken from":
      snapshot.sandbox_name === null ? snapshot.sandbox_id : `${snapshot.sandbox_name} (${snapshot.sandbox_id})`,
    reason: snapshot.reason,
    parent: snapshot.parent,
    children: snapshot.children.join(" "),
    sandboxes: snapshot.sandboxes.join(" "),
    labels: Object.entries(snapshot.labels)
      .map(([name, value]) => `${name}=${value}`)
      .join(" "),
    ...snapshot.details,
  });
}

const MARKS = { added: ["A", "green"], changed: ["M", "yellow"], removed: ["D", "red"] } as const satisfies Record<
  string,
  readonly [string, Colour]
>;

/** One change on a line, as `git status` shows them. */
export function formatDiff(
  { changes }: { readonly changes: readonly Pick<SnapshotDiff["changes"][number], "path" | "change" | "kind">[] },
  paint: Paint,
): string {
  return changes
    .map(({ path, change, kind }) => {
      const [mark, colour] = MARKS[change];
      return `${paint(mark, colour)} ${visible(path)}${kind === "folder" ? "/" : ""}\n`;
    })
    .join("");
}
