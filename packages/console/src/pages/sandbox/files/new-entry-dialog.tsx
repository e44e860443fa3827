import { SandboxerError } from "@sandboxer/client";
import type { JSX } from "preact";
import { useState } from "preact/hooks";
import { fileSpellings } from "../../../actions/file-actions.ts";
import { ActionDialog } from "../../../dialogs/action-dialog.tsx";
import { TextField } from "../../../dialogs/fields.tsx";
import { navigate } from "../../../router.tsx";
import { filesAddress } from "./addresses.ts";
import { entryIn, makeFolder, noteChange, write } from "./file-calls.ts";
import { joinPath, nameProblem } from "./paths.ts";
import { useQuickCall } from "./use-quick-call.ts";
import { plainName } from "./visible-name.ts";

interface NewEntryDialogProperties {
  readonly sandboxId: string;
  readonly folder: string;
  readonly what: "file" | "folder";
  readonly onClose: () => void;
}

/** Creates an empty file, which opens, or a folder. Existing entries are not changed. */
export function NewEntryDialog({ sandboxId, folder, what, onClose }: NewEntryDialogProperties): JSX.Element {
  const [name, setName] = useState("");
  const path = joinPath(folder, name);
  const problem = nameProblem(name);
  const call = useQuickCall(`New ${what} ${plainName(name)}`);
  const submit = (): void =>
    call.run(async () => {
      if ((await entryIn(sandboxId, folder, name)) !== undefined) {
        throw new SandboxerError("bad_request", `“${plainName(name)}” already exists.`, {
          hint: "Choose another name.",
        });
      }
      if (what === "file") await write(sandboxId, path, "");
      else await makeFolder(sandboxId, path);
      noteChange();
      onClose();
      if (what === "file") navigate(filesAddress(sandboxId, path));
    });
  return (
    <ActionDialog
      title={`New ${what} in ${plainName(folder)}`}
      submit={`Create ${what}`}
      onClose={onClose}
      call={call}
      ready={problem === undefined}
      onSubmit={submit}
      spellings={() =>
        what === "file" ? fileSpellings.write(sandboxId, path) : fileSpellings.makeFolder(sandboxId, path)
      }
      done={() => null}
    >
      <TextField label="Name" value={name} onChange={setName} hint={name === "" ? undefined : problem} />
    </ActionDialog>
  );
}
