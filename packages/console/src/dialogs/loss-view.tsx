import type { SnapshotDiff } from "@sandboxer/client";
import type { JSX } from "preact";
import { useLoaded } from "../live/use-loaded.ts";
import { client } from "../session.ts";

const SHOWN = 50;
const WORDS = { added: "deleted", changed: "reverted", removed: "restored" } as const;

/** The changes that a rewind would undo. */
export function LossView({
  sandboxId,
  snapshotId,
}: {
  readonly sandboxId: string;
  readonly snapshotId: string;
}): JSX.Element {
  const diff = useLoaded(
    (signal) => client.snapshots.diff(snapshotId, `sandbox:${sandboxId}`, { limit: SHOWN, signal }),
    [sandboxId, snapshotId],
  );
  if (diff.loading) return <p class="hint">Checking what would be lost …</p>;
  return (
    <div class="dialog-warning" role="status">
      <p>
        <strong>All changes since the snapshot are lost.</strong>
      </p>
      {diff.value === undefined ? (
        <p>The changed files could not be listed: {diff.error?.message}</p>
      ) : (
        <Counts diff={diff.value} />
      )}
    </div>
  );
}

function Counts({ diff }: { readonly diff: SnapshotDiff }): JSX.Element {
  const { added, changed, removed, changes } = diff;
  if (added + changed + removed === 0) return <p>No files differ. Its programs and memory are replaced.</p>;
  return (
    <>
      <p>
        Files: {added.toLocaleString()} added since then are deleted, {changed.toLocaleString()} changed are reverted,{" "}
        {removed.toLocaleString()} removed are restored.
      </p>
      <details>
        <summary>Show list</summary>
        <ul class="path-list">
          {changes.slice(0, SHOWN).map(({ path, change }) => (
            <li key={path}>
              {WORDS[change]}: {path}
            </li>
          ))}
          {added + changed + removed > SHOWN ? <li>… and more</li> : null}
        </ul>
      </details>
    </>
  );
}
