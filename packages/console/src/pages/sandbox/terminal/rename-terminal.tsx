import type { JSX } from "preact";
import { useState } from "preact/hooks";
import { Button } from "../../../ui/button.tsx";
import { Dialog } from "../../../ui/dialog.tsx";
import { nameTerminal, terminalNames } from "./settings.ts";

export function RenameTerminal({ id, onClose }: { readonly id: string; readonly onClose: () => void }): JSX.Element {
  const [name, setName] = useState(terminalNames.peek()[id] ?? "");
  const submit = (event: Event): void => {
    event.preventDefault();
    if (name.trim() !== "") nameTerminal(id, name.trim());
    onClose();
  };
  return (
    <Dialog title="Rename the terminal" onClose={onClose}>
      <form class="stack" onSubmit={submit}>
        <div class="field">
          <label for="terminal-name">Name</label>
          <input
            id="terminal-name"
            value={name}
            maxLength={60}
            autoFocus
            required
            onInput={(event) => setName(event.currentTarget.value)}
          />
        </div>
        <p class="hint">The name is stored in this browser only.</p>
        <p class="row">
          <Button type="submit" kind="primary">
            Rename
          </Button>
          <Button onClick={onClose}>Cancel</Button>
        </p>
      </form>
    </Dialog>
  );
}
