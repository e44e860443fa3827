import { Sandbox } from "@sandboxer/client";
import type { JSX } from "preact";
import { useMemo } from "preact/hooks";
import { query, setQuery } from "../../../router.tsx";
import { usePolled } from "../../../live/use-polled.ts";
import { client } from "../../../session.ts";
import { Button } from "../../../ui/button.tsx";
import { ErrorBox } from "../../../ui/error-box.tsx";
import type { SandboxTabProperties } from "../tabs.tsx";
import { PortTable } from "./port-table.tsx";
import { ProcessDetail } from "./process-detail.tsx";
import { ProcessList } from "./process-list.tsx";
import { ProcessTable } from "./process-table.tsx";
import "./processes.css";

const EVERY_MS = 1_500;

export function ProcessesTab({ record }: SandboxTabProperties): JSX.Element {
  const view = query.value.get("view");
  return (
    <div class="processes">
      <div class="row" role="group" aria-label="Process list">
        <Button pressed={view === null} onClick={() => setQuery({ view: undefined })}>
          Started over HTTP
        </Button>
        <Button pressed={view === "inside"} onClick={() => setQuery({ view: "inside", process: undefined })}>
          All processes
        </Button>
        <Button pressed={view === "ports"} onClick={() => setQuery({ view: "ports", process: undefined })}>
          Ports
        </Button>
      </div>
      {view === "inside" ? <ProcessTable sandboxId={record.id} /> : null}
      {view === "ports" ? <PortTable sandboxId={record.id} /> : null}
      {view === null ? <StartedProcesses sandboxId={record.id} /> : null}
    </div>
  );
}

function StartedProcesses({ sandboxId }: { readonly sandboxId: string }): JSX.Element {
  const sandbox = useMemo(() => Sandbox.attach(sandboxId, { client, autoResume: false }), [sandboxId]);
  const { value, error, again } = usePolled(sandboxId, EVERY_MS, async (signal) =>
    (await sandbox).processes({ signal }),
  );
  const chosen = query.value.get("process");
  const selected = value?.find(({ id }) => id === chosen);
  return (
    <>
      {error === undefined ? null : <ErrorBox error={error} />}
      {value === undefined ? <p class="page-note">Loading …</p> : null}
      {value === undefined ? null : (
        <ProcessList
          sandboxId={sandboxId}
          processes={value}
          selected={selected?.id}
          onSelect={(id) => setQuery({ process: id })}
        />
      )}
      {selected === undefined ? null : (
        <ProcessDetail
          key={selected.id}
          sandboxId={sandboxId}
          process={selected}
          onChanged={again}
          onClose={() => setQuery({ process: undefined, offset: undefined })}
        />
      )}
      {value !== undefined && chosen !== null && selected === undefined ? (
        <p class="hint">This process no longer exists.</p>
      ) : null}
    </>
  );
}
