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
        If you leave the terminal running, you can reopen it from this page or with <code>sandboxer attach</code>. Its
        output is kept; the program waits when 1 MiB is unread. If you end it, it and its programs are killed.
      </p>
      <p class="row">
        <Button kind="primary" onClick={() => onClose("leave")}>
          Leave running
        </Button>
        <Button kind="danger" onClick={() => onClose("end")}>
          End
        </Button>
        <Button onClick={onCancel}>Cancel</Button>
      </p>
    </Dialog>
  );
}
