import { Sandbox, type PromotionRecord, type SandboxRecord } from "@sandboxer/client";
import type { JSX } from "preact";
import { useState } from "preact/hooks";
import { promoteSpellings } from "../actions/snapshot-actions.ts";
import { sandboxTitle } from "../format/names.ts";
import { forgetSandbox, noteSandbox, sandboxes } from "../live/sandboxes.ts";
import { Link } from "../router.tsx";
import { client } from "../session.ts";
import { ActionDialog } from "./action-dialog.tsx";
import { useLongCall } from "./use-long-call.ts";

/** Gives the state of a fork to the sandbox that it was forked from. */
export function PromoteDialog({
  sandbox,
  onClose,
}: {
  readonly sandbox: SandboxRecord;
  readonly onClose: () => void;
}): JSX.Element {
  const [discardOthers, setDiscardOthers] = useState(false);
  const into = sandbox.origin.sandboxId ?? "";
  const original = sandboxes.value.get(into);
  const name = original === undefined ? into : sandboxTitle(original);
  const call = useLongCall<PromotionRecord>(`Promotion of ${sandboxTitle(sandbox)}`);
  const submit = (): void =>
    call.run(async (onProgress) => {
      const handle = await Sandbox.attach(sandbox.id, { client, autoResume: false });
      const promoted = await handle.promote({ into, discardOthers, onProgress });
      noteSandbox(promoted.sandbox);
      for (const id of promoted.deleted) forgetSandbox(id);
      return promoted;
    });
  return (
    <ActionDialog
      title={`Promote ${sandboxTitle(sandbox)}`}
      submit="Promote"
      danger
      onClose={onClose}
      call={call}
      onSubmit={submit}
      spellings={() => promoteSpellings(sandbox.id, { into, discardOthers })}
      done={(promoted) => <Done promoted={promoted} />}
    >
      <p>
        Gives the files, memory and programs of this sandbox to <strong>{name}</strong>, which keeps its id, name, token
        and ports. Its current state is kept as a snapshot. This sandbox is deleted.
      </p>
      <label>
        <input
          type="checkbox"
          checked={discardOthers}
          onChange={(event) => setDiscardOthers(event.currentTarget.checked)}
        />{" "}
        Delete the other forks of {name} too
      </label>
    </ActionDialog>
  );
}

function Done({ promoted: { sandbox, winner, deleted, kept } }: { readonly promoted: PromotionRecord }): JSX.Element {
  const others = deleted.filter((id) => id !== winner).length;
  return (
    <>
      <p>
        <Link to={`/sandboxes/${encodeURIComponent(sandbox.id)}`}>{sandboxTitle(sandbox)}</Link> has the promoted state.
        {others === 0 ? null : ` ${others} other ${others === 1 ? "fork was" : "forks were"} deleted.`}
      </p>
      {kept.map(({ id, message }) => (
        <p key={id}>
          {id} was not deleted: {message}
        </p>
      ))}
    </>
  );
}
