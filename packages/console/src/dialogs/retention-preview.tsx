import { Sandbox, type RetentionPreview } from "@sandboxer/client";
import type { JSX } from "preact";
import { formatBytes } from "../format/bytes.ts";
import { shortId } from "../format/names.ts";
import type { Retention } from "../format/retention.ts";
import { useLoaded } from "../live/use-loaded.ts";
import { client } from "../session.ts";
import { Age } from "../ui/age.tsx";
import { ErrorBox } from "../ui/error-box.tsx";

const SHOWN = 50;

/** Previews what rules would remove; null: the server's rules. */
export function RetentionPreviewView({
  sandboxId,
  retention,
}: {
  readonly sandboxId: string;
  readonly retention: Retention | null;
}): JSX.Element {
  const preview = useLoaded(
    async (signal) =>
      (await Sandbox.attach(sandboxId, { client, autoResume: false, signal })).previewRetention(retention, { signal }),
    [sandboxId, JSON.stringify(retention)],
  );
  if (preview.error !== undefined) return <ErrorBox error={preview.error} />;
  if (preview.value === undefined) return <p class="hint">Checking what would be removed …</p>;
  return <Shown preview={preview.value} />;
}

function Shown({ preview }: { readonly preview: RetentionPreview }): JSX.Element {
  const { checkpoints, snapshots, freedBytes } = preview;
  const going = checkpoints.going.length + snapshots.going.length;
  return (
    <div class={going === 0 ? "dialog-note" : "dialog-warning"} role="status">
      <p>
        <strong>
          {going === 0
            ? "Nothing would be removed."
            : `The next save would remove ${goingText(preview)}: ${formatBytes(freedBytes)}.`}
        </strong>
      </p>
      <p>{staysText(preview)}</p>
      {going === 0 ? null : (
        <details>
          <summary>Show list</summary>
          <ul class="path-list">
            {[...checkpoints.going, ...snapshots.going].slice(0, SHOWN).map(({ name, createdAt }) => (
              <li key={name}>
                {name.endsWith(".img") ? name : `snapshot ${shortId(name)}`}, <Age time={createdAt} /> old
              </li>
            ))}
            {going > SHOWN ? <li>… and {going - SHOWN} more</li> : null}
          </ul>
        </details>
      )}
    </div>
  );
}

function goingText({ checkpoints, snapshots }: RetentionPreview): string {
  const parts = [counted(checkpoints.going.length, "checkpoint"), counted(snapshots.going.length, "snapshot")];
  return parts.filter((part) => !part.startsWith("0 ")).join(" and ");
}

function staysText({ checkpoints, snapshots }: RetentionPreview): string {
  const why = [
    [snapshots.named, "named"],
    [snapshots.pinned, "pinned"],
    [snapshots.inUse, "in use"],
  ] as const;
  const reasons = why.filter(([count]) => count > 0).map(([count, word]) => `${count} ${word}`);
  const because = reasons.length === 0 ? "" : ` (${reasons.join(", ")})`;
  return `${counted(checkpoints.kept, "checkpoint")} and ${counted(snapshots.kept, "snapshot")}${because} are kept.`;
}

function counted(count: number, what: string): string {
  return `${count.toLocaleString()} ${what}${count === 1 ? "" : "s"}`;
}
