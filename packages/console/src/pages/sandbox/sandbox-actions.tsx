import type { SandboxRecord } from "@sandboxer/client";
import type { JSX } from "preact";
import { useState } from "preact/hooks";
import { offersFor } from "../../actions/offered.ts";
import { PRIMARY_ACTIONS, SANDBOX_ACTIONS, type SandboxAction } from "../../actions/sandbox-actions.ts";
import { requestAction } from "../../dialogs/action-request.ts";
import { forkDialog, promoteDialog, snapshotDialog, type SandboxDialog } from "../../dialogs/sandbox-dialogs.ts";
import { may } from "../../session.ts";
import { Button } from "../../ui/button.tsx";
import { SpellingList } from "../../ui/copy-as.tsx";
import { Dialog } from "../../ui/dialog.tsx";
import { Menu } from "../../ui/menu.tsx";
import { useMedia } from "../../ui/use-media.ts";
import { useAction } from "./use-action.ts";

/** The usual next steps; everything else is in the menu. A narrow window has room for the first button only. */
const IN_SIGHT: readonly SandboxDialog[] = [promoteDialog, snapshotDialog, forkDialog];

/** Actions on the whole sandbox: what people do most is the first button, and Delete is the last item of the menu. */
export function SandboxActions({ record }: { readonly record: SandboxRecord }): JSX.Element {
  const [spelled, setSpelled] = useState(false);
  const isNarrow = useMedia("(max-width: 600px)");
  const offered = (each: SandboxAction | SandboxDialog): boolean => may(each.scope) && each.applies(record);
  const primary = PRIMARY_ACTIONS.find(offered);
  const dialogs = isNarrow ? [] : IN_SIGHT.filter(offered);
  const shown = new Set<SandboxAction | SandboxDialog | undefined>([primary, ...dialogs]);
  const more = offersFor(record).filter(({ from }) => !shown.has(from));
  const actions = SANDBOX_ACTIONS.filter(offered);
  return (
    <div class="sandbox-actions" role="group" aria-label="Actions">
      {primary === undefined ? null : <ActionButton key={primary.name} action={primary} record={record} />}
      {dialogs.map((dialog) => (
        <Button key={dialog.name} onClick={() => dialog.open(record)}>
          {dialog.name}
        </Button>
      ))}
      {more.length === 0 ? null : (
        <Menu label="More actions" items={() => more}>
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
    <Button kind="primary" busy={busy} onClick={press}>
      {action.name}
    </Button>
  );
}
