import { Sandbox, type HandoffRecord, type InstanceRecord, type SandboxRecord } from "@sandboxer/client";
import type { JSX } from "preact";
import { useState } from "preact/hooks";
import { handoffSpellings } from "../actions/snapshot-actions.ts";
import { formatMilliseconds } from "../format/duration.ts";
import { sandboxTitle } from "../format/names.ts";
import { noteSandbox } from "../live/sandboxes.ts";
import { useLoaded } from "../live/use-loaded.ts";
import { client } from "../session.ts";
import { Button } from "../ui/button.tsx";
import { ErrorBox } from "../ui/error-box.tsx";
import { ActionDialog } from "./action-dialog.tsx";
import { SelectField } from "./fields.tsx";
import { useLongCall } from "./use-long-call.ts";

export function HandoffDialog({
  sandbox,
  onClose,
}: {
  readonly sandbox: SandboxRecord;
  readonly onClose: () => void;
}): JSX.Element {
  const instances = useLoaded((signal) => client.instances({ signal }), []);
  const others = instances.value?.filter(({ id, alive }) => alive && id !== sandbox.owner?.instanceId);
  const [chosen, setChosen] = useState<string | undefined>(undefined);
  const to = chosen ?? others?.[0]?.id;
  const call = useLongCall<HandoffRecord>(`Handoff of ${sandboxTitle(sandbox)}`);
  const submit = (): void => {
    if (to === undefined) return;
    call.run(async (onProgress) => {
      const handle = await Sandbox.attach(sandbox.id, { client });
      const moved = await handle.handoff(to, { onProgress });
      noteSandbox(moved.sandbox);
      return moved;
    });
  };
  return (
    <ActionDialog
      title={`Hand off ${sandboxTitle(sandbox)}`}
      submit="Hand off"
      ready={to !== undefined}
      onClose={onClose}
      call={call}
      onSubmit={submit}
      spellings={to === undefined ? undefined : () => handoffSpellings(sandbox.id, to)}
      done={({ from, to: at, elapsedMs, pausedMs }) => (
        <p>
          Moved {from === null ? "" : `from ${from} `}to <strong>{at}</strong> in {formatMilliseconds(elapsedMs)}.
          {pausedMs === null ? "" : ` It was paused for ${formatMilliseconds(pausedMs)}.`}
        </p>
      )}
    >
      <p class="hint">
        Saves the sandbox with its running programs and continues it on the other server. Terminals stay connected.
        {sandbox.flags.enableSandboxHandoff
          ? ""
          : " The sandbox was created without handoff, so this can fail while it is in use."}
      </p>
      {instances.error === undefined ? null : <ErrorBox error={instances.error} />}
      {others === undefined ? null : others.length === 0 ? (
        <NoOther onLook={instances.reload} />
      ) : (
        <SelectField
          label="Target server"
          value={to ?? ""}
          choices={others.map((instance) => ({ value: instance.id, text: instanceLine(instance) }))}
          onChange={setChosen}
        />
      )}
    </ActionDialog>
  );
}

function NoOther({ onLook }: { readonly onLook: () => void }): JSX.Element {
  return (
    <div class="dialog-warning" role="status">
      <p>
        <strong>No other server uses this store.</strong> Start one with the same <code>--store</code>, then refresh.
      </p>
      <Button onClick={onLook}>Refresh</Button>
    </div>
  );
}

function instanceLine({ id, url, here, owns }: InstanceRecord): string {
  return [id, url ?? "", here ? "this server" : "", `${owns.length} sandboxes`]
    .filter((part) => part !== "")
    .join(" · ");
}
