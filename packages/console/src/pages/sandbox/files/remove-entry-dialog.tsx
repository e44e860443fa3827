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
      tell(`Deleted: ${plainName(entry.name)}`);
      noteChange();
      onClose();
      onRemoved();
    });
  return (
    <ActionDialog
      title={`Delete ${plainName(entry.name)}?`}
      submit={recursive ? "Delete folder and contents" : "Delete"}
      danger
      onClose={onClose}
      call={call}
      onSubmit={submit}
      spellings={() => fileSpellings.remove(sandboxId, path, recursive)}
      done={() => null}
    >
      <p>
        {recursive ? "The folder " : entry.kind === "symlink" ? "The link (not its target) " : "The file "}
        <code class="file-path">
          <FileName name={path} />
        </code>{" "}
        {recursive ? "and its contents are" : "is"} deleted. This cannot be undone without a snapshot.
      </p>
    </ActionDialog>
  );
}
