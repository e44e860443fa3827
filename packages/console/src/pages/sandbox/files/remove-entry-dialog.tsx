import type { FileEntry } from "@sandboxer/client";
import type { JSX } from "preact";
import { fileSpellings } from "../../../actions/file-actions.ts";
import { ActionDialog } from "../../../dialogs/action-dialog.tsx";
import { tell } from "../../../ui/toasts.tsx";
import { noteChange, remove } from "./file-calls.ts";
import { FileName } from "./file-name.tsx";
import { joinPath } from "./paths.ts";
import { useQuickCall } from "./use-quick-call.ts";
import { plainName } from "./visible-name.ts";

interface RemoveEntryDialogProperties {
  readonly sandboxId: string;
  readonly folder: string;
  readonly entry: FileEntry;
  readonly onClose: () => void;
  readonly onRemoved: () => void;
}

export function RemoveEntryDialog(properties: RemoveEntryDialogProperties): JSX.Element {
  const { sandboxId, folder, entry, onClose, onRemoved } = properties;
  const recursive = entry.kind === "folder";
  const path = joinPath(folder, entry.name);
  const call = useQuickCall(`Remove ${plainName(entry.name)}`);
  const submit = (): void =>
    call.run(async () => {
      await remove(sandboxId, path, recursive);
      tell(`Removed: ${plainName(entry.name)}`);
      noteChange();
      onClose();
      onRemoved();
    });
  return (
    <ActionDialog
      title={`Remove ${plainName(entry.name)}?`}
      submit={recursive ? "Remove it and all in it" : "Remove it"}
      danger
      onClose={onClose}
      call={call}
      onSubmit={submit}
      spellings={() => fileSpellings.remove(sandboxId, path, recursive)}
      done={() => null}
    >
      <p>
        {recursive ? "The folder " : entry.kind === "symlink" ? "The link (not what it leads to) " : "The file "}
        <code class="file-path">
          <FileName name={path} />
        </code>{" "}
        {recursive ? "and everything in it are" : "is"} gone then, unless a snapshot has it.
      </p>
    </ActionDialog>
  );
}
