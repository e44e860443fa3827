import { SandboxerError, type FileEntry } from "@sandboxer/client";
import type { JSX } from "preact";
import { useState } from "preact/hooks";
import { fileSpellings } from "../../../actions/file-actions.ts";
import { ActionDialog } from "../../../dialogs/action-dialog.tsx";
import { TextField } from "../../../dialogs/fields.tsx";
import { entryIn, noteChange, rename } from "./file-calls.ts";
import { FileName } from "./file-name.tsx";
import { joinPath, nameOf, nameProblem, normalizePath, parentOf } from "./paths.ts";
import { renameBroken } from "./rename-broken.ts";
import { useQuickCall } from "./use-quick-call.ts";
import { isBroken, plainName, typableName } from "./visible-name.ts";

interface RenameEntryDialogProperties {
  readonly sandboxId: string;
  readonly folder: string;
  readonly entry: FileEntry;
  readonly onClose: () => void;
  readonly onRenamed: (path: string) => void;
}

/** Renames or moves. An existing entry is replaced only if that is selected. */
export function RenameEntryDialog(properties: RenameEntryDialogProperties): JSX.Element {
  const { sandboxId, folder, entry, onClose, onRenamed } = properties;
  const typable = typableName(entry.name);
  const [text, setText] = useState(typable);
  const [replace, setReplace] = useState(false);
  const [there, setThere] = useState<FileEntry>();
  const from = joinPath(folder, entry.name);
  const moves = text.startsWith("/");
  const to = moves ? normalizePath(text) : joinPath(folder, text);
  const problem = moves ? (to === "/" ? "The root folder cannot be renamed." : undefined) : nameProblem(text);
  const call = useQuickCall(`Rename ${plainName(entry.name)}`);
  const change = (value: string): void => {
    setText(value);
    setThere(undefined);
    setReplace(false);
  };
  const submit = (): void =>
    call.run(async () => {
      const occupied = await entryIn(sandboxId, parentOf(to), nameOf(to));
      setThere(occupied);
      if (occupied !== undefined && !replace) {
        throw new SandboxerError("bad_request", `“${plainName(nameOf(to))}” already exists.`, {
          hint: "Choose another name, or select replace.",
        });
      }
      if (isBroken(entry.name)) await renameBroken(sandboxId, folder, entry.name, to);
      else await rename(sandboxId, from, to);
      noteChange();
      onClose();
      onRenamed(to);
    });
  return (
    <ActionDialog
      title={`Rename ${plainName(entry.name)}`}
      submit={replace ? "Rename and replace" : "Rename"}
      danger={replace}
      onClose={onClose}
      call={call}
      ready={problem === undefined && to !== from}
      onSubmit={submit}
      spellings={isBroken(entry.name) ? undefined : () => fileSpellings.rename(sandboxId, from, to)}
      done={() => null}
    >
      <TextField
        label="New name"
        value={text}
        onChange={change}
        hint={problem ?? "A path that begins with a slash moves it there."}
      />
      {typable === entry.name ? null : (
        <p class="hint">
          Current name: <FileName name={entry.name} />. Characters that cannot be typed are replaced by underscores.
        </p>
      )}
      {there === undefined ? null : (
        <label>
          <input type="checkbox" checked={replace} onChange={(event) => setReplace(event.currentTarget.checked)} />{" "}
          Replace the existing {there.kind === "folder" ? "folder (only if it is empty)" : "file"}
        </label>
      )}
    </ActionDialog>
  );
}
