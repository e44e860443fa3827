import type { SandboxRecord } from "@sandboxer/client";
import type { JSX } from "preact";
import { useState } from "preact/hooks";
import { destroyAction, SANDBOX_ACTIONS, type SandboxAction } from "../../actions/sandbox-actions.ts";
import { navigate } from "../../router.tsx";
import { may } from "../../session.ts";
import { Button } from "../../ui/button.tsx";
import { SpellingList } from "../../ui/copy-as.tsx";
import { Dialog } from "../../ui/dialog.tsx";
import { tell } from "../../ui/toasts.tsx";
import { useAction } from "./use-action.ts";

/** What can be done to it as a whole. */
export function SandboxActions({ record }: { readonly record: SandboxRecord }): JSX.Element {
  const [spelled, setSpelled] = useState(false);
  const offered = SANDBOX_ACTIONS.filter((action) => may(action.scope) && action.applies(record));
  return (
    <div class="sandbox-actions" role="group" aria-label="Actions">
      {offered.map((action) => (
        <ActionButton key={action.name} action={action} record={record} />
      ))}
      <Button kind="quiet" label="Copy the actions as CLI, SDK or curl" onClick={() => setSpelled(true)}>
        {"</>"}
      </Button>
      {spelled ? (
        <Dialog title="The same from elsewhere" onClose={() => setSpelled(false)} wide>
          {SANDBOX_ACTIONS.filter((action) => action.applies(record)).map((action) => (
            <details key={action.name}>
              <summary>{action.name}</summary>
              <SpellingList spellings={action.spell(record)} />
            </details>
          ))}
        </Dialog>
      ) : null}
    </div>
  );
}

function ActionButton({
  action,
  record,
}: {
  readonly action: SandboxAction;
  readonly record: SandboxRecord;
}): JSX.Element {
  const [asking, setAsking] = useState(false);
  const { busy, run } = useAction(action, record);
  const perform = async (): Promise<void> => {
    const done = await run();
    setAsking(false);
    if (!done) return;
    tell(`${action.name}: done`);
    if (action === destroyAction) navigate("/");
  };
  return (
    <>
      <Button
        kind={action.danger === true ? "danger" : "plain"}
        busy={busy}
        onClick={() => (action.confirm === undefined ? void perform() : setAsking(true))}
      >
        {action.name}
      </Button>
      {asking ? (
        <Dialog title={`${action.name}?`} onClose={() => setAsking(false)}>
          <p>{action.confirm}</p>
          <p class="row">
            <Button kind="danger" busy={busy} onClick={() => void perform()}>
              {action.name}
            </Button>
            <Button onClick={() => setAsking(false)}>Cancel</Button>
          </p>
          <SpellingList spellings={action.spell(record)} />
        </Dialog>
      ) : null}
    </>
  );
}
