import type { JSX } from "preact";
import { processSpellings } from "../../../actions/process-actions.ts";
import { Button } from "../../../ui/button.tsx";
import { CopyAs } from "../../../ui/copy-as.tsx";
import type { PtySession } from "./pty-session.ts";
import { clampFontSize, fontSize, screenReader } from "./settings.ts";
import type { XtermScreen } from "./xterm-screen.ts";

export interface TerminalToolsProperties {
  readonly sandboxId: string;
  readonly session: PtySession;
  readonly screen: () => XtermScreen | undefined;
  readonly onRename: () => void;
  readonly onClose: () => void;
}

/** Actions on the shown terminal. */
export function TerminalTools({ sandboxId, session, screen, onRename, onClose }: TerminalToolsProperties): JSX.Element {
  const size = (change: number): void => void (fontSize.value = clampFontSize(fontSize.peek() + change));
  return (
    <div class="terminal-tools" role="toolbar" aria-label="Terminal">
      <Button kind="quiet" title="Copy the selection (Ctrl-Shift-C)" onClick={() => screen()?.copy()}>
        Copy
      </Button>
      <Button kind="quiet" title="Paste (Ctrl-Shift-V)" onClick={() => void screen()?.paste()}>
        Paste
      </Button>
      <Button kind="quiet" label="A−: smaller text" onClick={() => size(-1)}>
        A−
      </Button>
      <Button kind="quiet" label="A+: larger text" onClick={() => size(1)}>
        A+
      </Button>
      <Button
        kind="quiet"
        pressed={screenReader.value}
        title="Screen reader mode: read the terminal line by line. Ctrl-Shift-↑ leaves the terminal."
        onClick={() => void (screenReader.value = !screenReader.peek())}
      >
        Reader
      </Button>
      <Button kind="quiet" onClick={onRename}>
        Rename
      </Button>
      <CopyAs what="This terminal" spellings={() => processSpellings.attach(sandboxId, session.id)} />
      <Button kind="quiet" onClick={onClose}>
        Close
      </Button>
    </div>
  );
}
