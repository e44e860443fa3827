import type { SandboxRecord } from "@sandboxer/client";
import { useState } from "preact/hooks";
import type { SandboxAction } from "../../actions/sandbox-actions.ts";
import { refreshSandbox } from "../../live/sandboxes.ts";
import { tellError } from "../../ui/toasts.tsx";

/** Does an action once at a time, and looks at the sandbox again afterwards. */
export function useAction(
  action: SandboxAction,
  record: SandboxRecord,
): { readonly busy: boolean; readonly run: () => Promise<boolean> } {
  const [busy, setBusy] = useState(false);
  const run = async (): Promise<boolean> => {
    setBusy(true);
    try {
      await action.run(record, () => {});
      return true;
    } catch (thrown) {
      tellError(`${action.name}: not done`, thrown);
      return false;
    } finally {
      setBusy(false);
      void refreshSandbox(record.id);
    }
  };
  return { busy, run };
}
