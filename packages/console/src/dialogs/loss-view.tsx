import type { SnapshotDiff } from "@sandboxer/client";
import type { JSX } from "preact";
import { useLoaded } from "../live/use-loaded.ts";
import { client } from "../session.ts";

const SHOWN = 50;
const WORDS = { added: "goes", changed: "goes back", removed: "comes back" } as const;

/** What a rewind undoes, counted before it is done. */
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
  if (diff.loading) return <p class="hint">Counting what would be lost …</p>;
  return (
    <div class="dialog-warning" role="status">
      <p>
        <strong>What happened in it since the snapshot is lost.</strong>
      </p>
      {diff.value === undefined ? (
        <p>What has changed could not be counted: {diff.error?.message}</p>
      ) : (
        <Counts diff={diff.value} />
      )}
    </div>
  );
}

function Counts({ diff }: { readonly diff: SnapshotDiff }): JSX.Element {
  const { added, changed, removed, changes } = diff;
  if (added + changed + removed === 0) return <p>No files differ. What runs in it, and its memory, are replaced.</p>;
  return (
    <>
      <p>
        Files: {added.toLocaleString()} added since then go, {changed.toLocaleString()} changed go back,{" "}
        {removed.toLocaleString()} removed come back.
      </p>
      <details>
        <summary>Which</summary>
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
