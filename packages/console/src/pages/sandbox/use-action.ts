import type { SandboxRecord } from "@sandboxer/client";
import { useState } from "preact/hooks";
import type { SandboxAction } from "../../actions/sandbox-actions.ts";
import { performAction } from "../../dialogs/action-request.ts";

/** Runs an action, once at a time. */
export function useAction(
  action: SandboxAction,
  record: SandboxRecord,
): { readonly busy: boolean; readonly run: () => Promise<void> } {
  const [busy, setBusy] = useState(false);
  const run = async (): Promise<void> => {
    setBusy(true);
    await performAction({ action, record });
    setBusy(false);
  };
  return { busy, run };
}
