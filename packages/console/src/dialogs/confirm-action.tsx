import type { JSX } from "preact";
import { useState } from "preact/hooks";
import { sandboxTitle } from "../format/names.ts";
import { Button } from "../ui/button.tsx";
import { SpellingList } from "../ui/copy-as.tsx";
import { Dialog } from "../ui/dialog.tsx";
import { actionRequest, performAction, type ActionRequest } from "./action-request.ts";

/** Asks before an action that cannot be undone or affects others. */
export function ConfirmAction(): JSX.Element | null {
  const { value } = actionRequest;
  return value === undefined ? null : <Confirmation key={value.record.id} request={value} />;
}

function Confirmation({ request }: { readonly request: ActionRequest }): JSX.Element {
  const { action, record } = request;
  const [busy, setBusy] = useState(false);
  const close = (): void => {
    if (actionRequest.peek() === request) actionRequest.value = undefined;
  };
  const perform = async (): Promise<void> => {
    setBusy(true);
    await performAction(request);
    close();
  };
  return (
    <Dialog title={`${action.name} ${sandboxTitle(record)}?`} onClose={close}>
      <div class="stack">
        <p>{action.confirm}</p>
        <div class="row">
          <Button kind={action.danger === true ? "danger" : "primary"} busy={busy} onClick={() => void perform()}>
            {action.name}
          </Button>
          <Button onClick={close}>Cancel</Button>
        </div>
        <details>
          <summary>Copy as command, program or curl</summary>
          <SpellingList spellings={action.spell(record)} />
        </details>
      </div>
    </Dialog>
  );
}
