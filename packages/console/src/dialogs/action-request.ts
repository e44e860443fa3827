import { signal } from "@preact/signals";
import type { SandboxRecord } from "@sandboxer/client";
import { destroyAction, type SandboxAction } from "../actions/sandbox-actions.ts";
import { refreshSandbox } from "../live/sandboxes.ts";
import { sandboxTitle } from "../format/names.ts";
import { navigate, sandboxInSight } from "../router.tsx";
import { tell, tellError } from "../ui/toasts.tsx";

export interface ActionRequest {
  readonly action: SandboxAction;
  readonly record: SandboxRecord;
}

/** An action that waits for confirmation. */
export const actionRequest = signal<ActionRequest | undefined>(undefined);

/** Runs an action, after a confirmation if it cannot be undone. A toast reports the result. */
export function requestAction(action: SandboxAction, record: SandboxRecord): void {
  if (action.confirm === undefined) void performAction({ action, record });
  else actionRequest.value = { action, record };
}

export async function performAction({ action, record }: ActionRequest): Promise<void> {
  try {
    await action.run(record, () => {});
    tell(`${action.name}: ${sandboxTitle(record)}: done`);
    if (action === destroyAction && sandboxInSight() === record.id) navigate("/");
  } catch (thrown) {
    tellError(`${action.name}: ${sandboxTitle(record)}`, thrown);
  } finally {
    void refreshSandbox(record.id);
  }
}
