import type { JSX } from "preact";
import { Button } from "../../../ui/button.tsx";
import { Dialog } from "../../../ui/dialog.tsx";

export interface CloseTerminalProperties {
  readonly name: string;
  readonly onCancel: () => void;
  readonly onClose: (how: "leave" | "end") => void;
}

export function CloseTerminal({ name, onCancel, onClose }: CloseTerminalProperties): JSX.Element {
  return (
    <Dialog title={`Close ${name}?`} onClose={onCancel}>
      <p>
        Left running, it can be shown again from here or with <code>sandboxer attach</code>. What it writes is kept;
        with 1 MiB unread it waits for a reader. Ended, it and what runs in it are killed.
      </p>
      <p class="row">
        <Button kind="primary" onClick={() => onClose("leave")}>
          Leave it running
        </Button>
        <Button kind="danger" onClick={() => onClose("end")}>
          End it
        </Button>
        <Button onClick={onCancel}>Cancel</Button>
      </p>
    </Dialog>
  );
}
