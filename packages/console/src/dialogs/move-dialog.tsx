import { Sandbox, type BackendRecord, type SandboxRecord } from "@sandboxer/client";
import type { JSX } from "preact";
import { useState } from "preact/hooks";
import { moveSpellings } from "../actions/snapshot-actions.ts";
import { sandboxTitle } from "../format/names.ts";
import { noteSandbox } from "../live/sandboxes.ts";
import { useLoaded } from "../live/use-loaded.ts";
import { client } from "../session.ts";
import { ErrorBox } from "../ui/error-box.tsx";
import { ActionDialog } from "./action-dialog.tsx";
import { CarriedView } from "./carried-view.tsx";
import { SelectField } from "./fields.tsx";
import { NewSandboxes } from "./new-sandboxes.tsx";
import { useLongCall } from "./use-long-call.ts";

export function MoveDialog({
  sandbox,
  onClose,
}: {
  readonly sandbox: SandboxRecord;
  readonly onClose: () => void;
}): JSX.Element {
  const backends = useLoaded((signal) => client.backends({ signal }), []);
  const others = backends.value?.filter(
    ({ name, capabilities }) => name !== sandbox.backend && capabilities["files"] === true,
  );
  const usable = others?.filter(({ ok }) => ok) ?? [];
  const [chosen, setChosen] = useState<string | undefined>(undefined);
  const backend = chosen ?? usable[0]?.name;
  const call = useLongCall<Sandbox>(`Move of ${sandboxTitle(sandbox)}`);
  const submit = (): void => {
    if (backend === undefined) return;
    call.run(async (onProgress) => {
      const handle = await Sandbox.attach(sandbox.id, { client });
      const moved = await handle.move({ backend, onProgress });
      noteSandbox(moved.record);
      return moved;
    });
  };
  return (
    <ActionDialog
      title={`Move ${sandboxTitle(sandbox)} to another backend`}
      submit="Move"
      danger
      ready={backend !== undefined}
      onClose={onClose}
      call={call}
      onSubmit={submit}
      spellings={backend === undefined ? undefined : () => moveSpellings(sandbox.id, backend)}
      done={(moved) => <Moved moved={moved} />}
    >
      <p>
        Moves the files of the workspace. Memory, running programs and changes outside the workspace are lost. The
        sandbox keeps its id, name, labels, key and token. The old copy is deleted once the new one runs.
      </p>
      {backends.error === undefined ? null : <ErrorBox error={backends.error} />}
      {others === undefined ? null : usable.length === 0 ? (
        <NoOther others={others} />
      ) : (
        <SelectField
          label="Backend"
          value={backend ?? ""}
          choices={others.map(({ name, ok, summary }) => ({
            value: name,
            text: ok ? name : `${name}: ${summary}`,
            disabled: !ok,
          }))}
          onChange={setChosen}
        />
      )}
    </ActionDialog>
  );
}

function NoOther({ others }: { readonly others: readonly BackendRecord[] }): JSX.Element {
  return (
    <div class="dialog-warning" role="status">
      <p>
        <strong>No other backend of this server is available.</strong>
      </p>
      <ul>
        {others.map(({ name, summary, remedy }) => (
          <li key={name}>
            {name}: {summary} {remedy ?? ""}
          </li>
        ))}
      </ul>
    </div>
  );
}

function Moved({ moved }: { readonly moved: Sandbox }): JSX.Element {
  return (
    <>
      <p>Moved to {moved.record.backend}.</p>
      <NewSandboxes sandboxes={[moved]} />
      {moved.carried === undefined ? null : <CarriedView carried={moved.carried} />}
    </>
  );
}
