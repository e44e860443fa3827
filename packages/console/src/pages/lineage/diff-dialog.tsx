import type { SnapshotDiff } from "@sandboxer/client";
import type { JSX } from "preact";
import { useState } from "preact/hooks";
import { diffSpellings } from "../../actions/snapshot-actions.ts";
import { useLoaded } from "../../live/use-loaded.ts";
import { client } from "../../session.ts";
import { Button } from "../../ui/button.tsx";
import { SpellingList } from "../../ui/copy-as.tsx";
import { Dialog } from "../../ui/dialog.tsx";
import { ErrorBox } from "../../ui/error-box.tsx";
import type { Comparison } from "./compare.ts";
import { DiffTable } from "./diff-table.tsx";

const SOME = 1_000;
const ALL = 100_000;

/** The files that differ between two states. */
export function DiffDialog({
  comparison,
  names,
  onClose,
}: {
  readonly comparison: Comparison;
  /** The display names of the two. */
  readonly names: readonly [from: string, to: string];
  readonly onClose: () => void;
}): JSX.Element {
  const { from, to } = comparison;
  const [limit, setLimit] = useState(SOME);
  const diff = useLoaded((signal) => client.snapshots.diff(from, to, { limit, signal }), [from, to, limit]);
  return (
    <Dialog title={`From ${names[0]} to ${names[1]}`} onClose={onClose} wide>
      <div class="stack">
        {diff.error === undefined ? null : (
          <ErrorBox error={diff.error}>
            <Button onClick={diff.reload}>Try again</Button>
          </ErrorBox>
        )}
        {diff.loading && diff.value === undefined ? <p class="hint">Comparing …</p> : null}
        {diff.value === undefined ? null : <Found diff={diff.value} />}
        {diff.value?.truncated === true && limit < ALL ? (
          <p class="row">
            The list is truncated.
            <Button busy={diff.loading} onClick={() => setLimit(ALL)}>
              Show all
            </Button>
          </p>
        ) : null}
        <details>
          <summary>Copy as command, program or curl</summary>
          <SpellingList spellings={diffSpellings(from, to)} />
        </details>
      </div>
    </Dialog>
  );
}

function Found({ diff }: { readonly diff: SnapshotDiff }): JSX.Element {
  const { added, changed, removed } = diff;
  if (added + changed + removed === 0) return <p role="status">No files differ.</p>;
  return <DiffTable diff={diff} />;
}
