import type { SandboxRecord } from "@sandboxer/client";
import { SANDBOX_DIALOGS, type SandboxDialog } from "../dialogs/sandbox-dialogs.ts";
import { requestAction } from "../dialogs/action-request.ts";
import { may } from "../session.ts";
import { SANDBOX_ACTIONS, type SandboxAction } from "./sandbox-actions.ts";

interface Offer {
  readonly from: SandboxAction | SandboxDialog;
  readonly text: string;
  readonly danger: boolean;
  readonly choose: () => void;
}

/** The actions that the user may do on a sandbox now, for menus and the palette. */
export function offersFor(record: SandboxRecord): readonly Offer[] {
  const dialogs = SANDBOX_DIALOGS.filter((each) => may(each.scope) && each.applies(record)).map((dialog) => ({
    from: dialog,
    text: dialog.name,
    danger: false,
    choose: () => dialog.open(record),
  }));
  const actions = SANDBOX_ACTIONS.filter((each) => may(each.scope) && each.applies(record)).map((action) => ({
    from: action,
    text: action.confirm === undefined ? action.name : `${action.name} …`,
    danger: action.danger === true,
    choose: () => requestAction(action, record),
  }));
  return [...dialogs, ...actions];
}
