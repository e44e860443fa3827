import { Sandbox, type SandboxRecord } from "@sandboxer/client";
import type { JSX } from "preact";
import { useState } from "preact/hooks";
import { forkSpellings, type ForkChoice } from "../actions/snapshot-actions.ts";
import { sandboxTitle } from "../format/names.ts";
import { noteSandbox } from "../live/sandboxes.ts";
import { client } from "../session.ts";
import { ActionDialog } from "./action-dialog.tsx";
import { NameField, NumberField } from "./fields.tsx";
import { NewSandboxes } from "./new-sandboxes.tsx";
import { useLongCall } from "./use-long-call.ts";

const MOST = 100;

export function ForkDialog({
  sandbox,
  onClose,
}: {
  readonly sandbox: SandboxRecord;
  readonly onClose: () => void;
}): JSX.Element {
  const [count, setCount] = useState(1);
  const [name, setName] = useState("");
  const call = useLongCall<readonly Sandbox[]>(`Fork of ${sandboxTitle(sandbox)}`);
  const choice: ForkChoice = { count, name: name === "" ? undefined : name };
  const submit = (): void =>
    call.run(async (onProgress) => {
      const handle = await Sandbox.attach(sandbox.id, { client });
      const made = await handle.fork({ ...choice, onProgress });
      for (const { record } of made) noteSandbox(record);
      return made;
    });
  return (
    <ActionDialog
      title={`Fork ${sandboxTitle(sandbox)}`}
      submit={count > 1 ? `Create ${count} copies` : "Create a copy"}
      onClose={onClose}
      call={call}
      ready={Number.isInteger(count)}
      onSubmit={submit}
      spellings={() => forkSpellings(sandbox.id, choice)}
      done={(made) => (
        <>
          <p>
            {made.length} {made.length === 1 ? "copy was" : "copies were"} created.
          </p>
          <NewSandboxes sandboxes={made} />
        </>
      )}
    >
      <p class="hint">
        Creates new sandboxes from the current state. This sandbox keeps running. If one copy fails, all are undone.
      </p>
      <NumberField label="Copies" value={count} min={1} max={MOST} onChange={setCount} />
      <NameField label="Name" value={name} onChange={setName} hint={nameHint(name, count)} />
    </ActionDialog>
  );
}

function nameHint(name: string, count: number): string {
  if (name === "") return "Optional.";
  return count > 1 ? `The copies are named ${name}-1 to ${name}-${count}.` : `The copy is named ${name}.`;
}
