import type { ComponentChildren, JSX } from "preact";
import { formatBytes } from "../../../format/bytes.ts";
import { formatMilliseconds } from "../../../format/duration.ts";
import { Link } from "../../../router.tsx";
import { Button } from "../../../ui/button.tsx";
import { OperationProgress } from "../../../ui/operation-progress.tsx";
import type { Mark } from "./marks.ts";

/** Everything that is known of one mark. */
export function MarkDetails({
  mark,
  sandboxId,
  onClose,
}: {
  readonly mark: Mark;
  readonly sandboxId: string;
  readonly onClose: () => void;
}): JSX.Element {
  const { startMs, endMs, processId, operation } = mark;
  const lasted = endMs === undefined ? "running" : endMs > startMs ? formatMilliseconds(endMs - startMs) : undefined;
  return (
    <section class="card stack timeline-details" aria-label={`Details: ${mark.title}`}>
      <header class="row">
        <h2>{mark.title}</h2>
        {mark.outcome === "" ? null : <span class={mark.failed ? "chip chip-failed" : "chip"}>{mark.outcome}</span>}
        <Button kind="quiet" label="Close the details" onClick={onClose}>
          ✕
        </Button>
      </header>
      <dl class="timeline-fields">
        <Field name="Started">{new Date(startMs).toLocaleString()}</Field>
        {lasted === undefined ? null : <Field name="Duration">{lasted}</Field>}
        {Object.entries(mark.data).map(([name, value]) => (
          <Field key={name} name={name}>
            {shown(name, value)}
          </Field>
        ))}
      </dl>
      {operation === undefined ? null : <OperationProgress operation={operation} />}
      {processId === undefined || mark.data["kind"] === "execution" ? null : (
        <Link to={`/sandboxes/${encodeURIComponent(sandboxId)}/processes?process=${encodeURIComponent(processId)}`}>
          Its output
        </Link>
      )}
      <SnapshotLink data={mark.data} />
    </section>
  );
}

function Field({ name, children }: { readonly name: string; readonly children: ComponentChildren }): JSX.Element {
  return (
    <div>
      <dt>{name}</dt>
      <dd>{children}</dd>
    </div>
  );
}

function SnapshotLink({ data }: { readonly data: Mark["data"] }): JSX.Element | null {
  const id = data["snapshot_id"];
  if (typeof id !== "string") return null;
  return <Link to={`/lineage?focus=${encodeURIComponent(id)}`}>The snapshot in the lineage</Link>;
}

function shown(name: string, value: unknown): string {
  if (value === null || value === undefined) return "–";
  if (typeof value === "number" && name.endsWith("_bytes")) return formatBytes(value);
  if (typeof value === "number" && name.endsWith("_ms")) return formatMilliseconds(value);
  return typeof value === "string" ? value : JSON.stringify(value);
}
