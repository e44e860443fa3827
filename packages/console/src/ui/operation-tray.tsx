import type { JSX } from "preact";
import { useState } from "preact/hooks";
import { sandboxTitle, shortId } from "../format/names.ts";
import { operations, runningOperations } from "../live/operations.ts";
import { sandboxes } from "../live/sandboxes.ts";
import { Link } from "../router.tsx";
import { Button } from "./button.tsx";
import { Dialog } from "./dialog.tsx";
import { OperationProgress } from "./operation-progress.tsx";

/** The number of running operations, and their list. Hidden if there are none. */
export function OperationTray(): JSX.Element | null {
  const [open, setOpen] = useState(false);
  const running = runningOperations.value.length;
  if (operations.value.length === 0) return null;
  return (
    <>
      <Button kind="quiet" label={`Operations: ${running} running`} onClick={() => setOpen(true)}>
        {running === 0 ? "Operations" : `${running} running`}
      </Button>
      {open ? (
        <Dialog title="Operations of this server" onClose={() => setOpen(false)} wide>
          <OperationList />
        </Dialog>
      ) : null}
    </>
  );
}

function OperationList(): JSX.Element {
  return (
    <ul class="operation-list">
      {operations.value.map((operation) => (
        <li key={operation.id} class="card">
          {operation.sandboxId === null ? null : <SandboxLink id={operation.sandboxId} />}
          <OperationProgress operation={operation} />
        </li>
      ))}
    </ul>
  );
}

function SandboxLink({ id }: { readonly id: string }): JSX.Element {
  const record = sandboxes.value.get(id);
  if (record === undefined) return <span class="mono">{shortId(id)}</span>;
  return <Link to={`/sandboxes/${encodeURIComponent(id)}/timeline`}>{sandboxTitle(record)}</Link>;
}
