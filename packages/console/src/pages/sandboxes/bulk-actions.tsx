import type { SandboxRecord } from "@sandboxer/client";
import type { JSX } from "preact";
import { SANDBOX_ACTIONS } from "../../actions/sandbox-actions.ts";
import { may } from "../../session.ts";
import { Button } from "../../ui/button.tsx";
import { bulkRequest } from "./bulk-dialog.tsx";
import { clearSelection } from "./selection.ts";

/** Actions on all selected sandboxes. */
export function BulkActions({ chosen }: { readonly chosen: readonly SandboxRecord[] }): JSX.Element {
  return (
    <div class="bulk" role="toolbar" aria-label="Actions for selected sandboxes">
      <span aria-live="polite">{chosen.length} selected</span>
      {SANDBOX_ACTIONS.filter(({ scope }) => may(scope)).map((each) => (
        <Button
          key={each.name}
          kind={each.danger === true ? "danger" : "plain"}
          disabled={!chosen.some((record) => each.applies(record))}
          onClick={() => (bulkRequest.value = { action: each, chosen })}
        >
          {each.name}
        </Button>
      ))}
      <Button kind="quiet" onClick={clearSelection}>
        Clear selection
      </Button>
    </div>
  );
}
