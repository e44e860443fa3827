import { Sandbox, type BackendRecord, type SandboxRecord, type SnapshotRecord } from "@sandboxer/client";
import type { JSX } from "preact";
import { useState } from "preact/hooks";
import { snapshotSpellings, type CaptureChoice } from "../actions/snapshot-actions.ts";
import { formatBytes } from "../format/bytes.ts";
import { sandboxTitle } from "../format/names.ts";
import { useLoaded } from "../live/use-loaded.ts";
import { client } from "../session.ts";
import { Link } from "../router.tsx";
import { ActionDialog } from "./action-dialog.tsx";
import { NameField, SelectField, type Choice } from "./fields.tsx";
import { LabelFields, labelsOfRows, type LabelRows } from "./label-fields.tsx";
import { snapshotTitle } from "./snapshot-names.ts";
import { useLongCall } from "./use-long-call.ts";

interface Properties {
  readonly sandbox: SandboxRecord;
  readonly onClose: () => void;
}

export function SnapshotDialog({ sandbox, onClose }: Properties): JSX.Element {
  const [name, setName] = useState("");
  const [mode, setMode] = useState<Mode>("");
  const [rows, setRows] = useState<LabelRows>([]);
  const backends = useLoaded((signal) => client.backends({ signal }), []);
  const call = useLongCall<SnapshotRecord>(`Snapshot of ${sandboxTitle(sandbox)}`);
  const labels = labelsOfRows(rows);
  const choice: CaptureChoice = {
    name: name === "" ? undefined : name,
    mode: mode === "" ? undefined : mode,
    labels: Object.keys(labels).length === 0 ? undefined : labels,
  };
  const submit = (): void =>
    call.run(async (onProgress) => {
      const handle = await Sandbox.attach(sandbox.id, { client });
      return handle.snapshot({ ...choice, onProgress });
    });
  return (
    <ActionDialog
      title={`Snapshot of ${sandboxTitle(sandbox)}`}
      submit="Take snapshot"
      onClose={onClose}
      call={call}
      onSubmit={submit}
      spellings={() => snapshotSpellings(sandbox.id, choice)}
      done={(snapshot) => <Taken snapshot={snapshot} />}
    >
      <p class="hint">
        {sandbox.state === "stored"
          ? "The sandbox is paused. It is resumed first and keeps running."
          : "The sandbox keeps running."}
      </p>
      <NameField label="Name" value={name} onChange={setName} hint="Optional." />
      <SelectField
        label="Contents"
        value={mode}
        choices={modesOf(backends.value?.find((backend) => backend.name === sandbox.backend))}
        onChange={(value) => setMode(value as Mode)}
      />
      <LabelFields rows={rows} onChange={setRows} />
    </ActionDialog>
  );
}

type Mode = NonNullable<CaptureChoice["mode"]> | "";

/**
 * Modes that the backend does not support are shown but disabled. While its capabilities are unknown, the server
 * decides.
 */
function modesOf(backend: BackendRecord | undefined): Choice[] {
  const capabilities = backend?.capabilities;
  const can = (yes: boolean): { readonly disabled: boolean; readonly suffix: string } => ({
    disabled: capabilities !== undefined && !yes,
    suffix: capabilities === undefined || yes ? "" : ` (${backend?.name} cannot)`,
  });
  const full = can(capabilities?.["snapshot"] === "full");
  const filesystem = can(capabilities?.["filesystemSnapshot"] === true);
  const workspace = can(capabilities?.["files"] === true);
  return [
    { value: "", text: "Everything that the backend supports" },
    { value: "full", text: `Everything: memory, processes, files${full.suffix}`, disabled: full.disabled },
    { value: "filesystem", text: `Files only${filesystem.suffix}`, disabled: filesystem.disabled },
    { value: "workspace", text: `The workspace, for any backend${workspace.suffix}`, disabled: workspace.disabled },
  ];
}

function Taken({ snapshot }: { readonly snapshot: SnapshotRecord }): JSX.Element {
  return (
    <p>
      <strong>{snapshotTitle(snapshot)}</strong> was taken: {snapshot.mode}, {formatBytes(snapshot.sizeBytes)}.{" "}
      <Link to={`/lineage?focus=${encodeURIComponent(snapshot.id)}`}>Show in lineage</Link>
    </p>
  );
}
