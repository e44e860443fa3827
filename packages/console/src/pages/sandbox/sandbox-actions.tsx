import type { SandboxRecord } from "@sandboxer/client";
import type { JSX } from "preact";
import { useState } from "preact/hooks";
import { destroyAction, SANDBOX_ACTIONS, type SandboxAction } from "../../actions/sandbox-actions.ts";
import { requestAction } from "../../dialogs/action-request.ts";
import { SANDBOX_DIALOGS, type SandboxDialog } from "../../dialogs/sandbox-dialogs.ts";
import { may } from "../../session.ts";
import { Button } from "../../ui/button.tsx";
import { SpellingList } from "../../ui/copy-as.tsx";
import { Dialog } from "../../ui/dialog.tsx";
import { Menu } from "../../ui/menu.tsx";
import { useAction } from "./use-action.ts";

/** The dialogs with a button of their own; the others are in a menu. */
const IN_SIGHT: readonly SandboxDialog[] = SANDBOX_DIALOGS.filter(({ name }) => /^(Snapshot|Fork|Hand off)/.test(name));

/** Actions on the whole sandbox. */
export function SandboxActions({ record }: { readonly record: SandboxRecord }): JSX.Element {
  const [spelled, setSpelled] = useState(false);
  const offered = (each: SandboxAction | SandboxDialog): boolean => may(each.scope) && each.applies(record);
  const more = SANDBOX_DIALOGS.filter((dialog) => offered(dialog) && !IN_SIGHT.includes(dialog));
  const actions = SANDBOX_ACTIONS.filter(offered);
  return (
    <div class="sandbox-actions" role="group" aria-label="Actions">
      {actions
        .filter((action) => action !== destroyAction)
        .map((action) => (
          <ActionButton key={action.name} action={action} record={record} />
        ))}
      {IN_SIGHT.filter(offered).map((dialog) => (
        <Button key={dialog.name} onClick={() => dialog.open(record)}>
          {dialog.name}
        </Button>
      ))}
      {actions.includes(destroyAction) ? <ActionButton action={destroyAction} record={record} /> : null}
      {more.length === 0 ? null : (
        <Menu
          label="More actions"
          items={() => more.map((dialog) => ({ text: dialog.name, choose: () => dialog.open(record) }))}
        >
          More ▾
        </Menu>
      )}
      {actions.length === 0 ? null : (
        <Button kind="quiet" label="Copy the actions as CLI, SDK or curl" onClick={() => setSpelled(true)}>
          {"</>"}
        </Button>
      )}
      {spelled ? <Spelled record={record} actions={actions} onClose={() => setSpelled(false)} /> : null}
    </div>
  );
}

interface SpelledProperties {
  readonly record: SandboxRecord;
  readonly actions: readonly SandboxAction[];
  readonly onClose: () => void;
}

function Spelled({ record, actions, onClose }: SpelledProperties): JSX.Element {
  return (
    <Dialog title="Run these actions from a program" onClose={onClose} wide>
      <div class="stack">
        {actions.map((action) => (
          <details key={action.name}>
            <summary>{action.name}</summary>
            <SpellingList spellings={action.spell(record)} />
          </details>
        ))}
        <p class="hint">Actions with a dialog show their commands there.</p>
      </div>
    </Dialog>
  );
}

interface ActionButtonProperties {
  readonly action: SandboxAction;
  readonly record: SandboxRecord;
}

function ActionButton({ action, record }: ActionButtonProperties): JSX.Element {
  const { busy, run } = useAction(action, record);
  const press = (): void => {
    if (action.confirm === undefined) void run();
    else requestAction(action, record);
  };
  return (
    <Button kind={action.danger === true ? "danger" : "plain"} busy={busy} onClick={press}>
      {action.name}
    </Button>
  );
}
