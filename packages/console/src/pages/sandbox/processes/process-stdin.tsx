import type { JSX } from "preact";
import { useState } from "preact/hooks";
import { processSpellings } from "../../../actions/process-actions.ts";
import { Button } from "../../../ui/button.tsx";
import { CopyAs } from "../../../ui/copy-as.tsx";
import { tell, tellError } from "../../../ui/toasts.tsx";
import { writeStdin } from "./process-calls.ts";

export function ProcessStdin(properties: { readonly sandboxId: string; readonly processId: string }): JSX.Element {
  const { sandboxId, processId } = properties;
  const [text, setText] = useState("");
  const [newline, setNewline] = useState(true);
  const [busy, setBusy] = useState(false);
  const send = async (data: string, close: boolean): Promise<void> => {
    setBusy(true);
    try {
      await writeStdin(sandboxId, processId, data, close);
      setText("");
      if (close) tell("Input closed.");
    } catch (thrown) {
      tellError("The input was not sent", thrown);
    } finally {
      setBusy(false);
    }
  };
  const typed = newline ? `${text}\n` : text;
  return (
    <form
      class="row"
      onSubmit={(event) => {
        event.preventDefault();
        void send(typed, false);
      }}
    >
      <label for="process-stdin">Input</label>
      <input
        id="process-stdin"
        class="process-stdin mono"
        autoComplete="off"
        spellcheck={false}
        value={text}
        onInput={(event) => setText(event.currentTarget.value)}
      />
      <label class="process-follow">
        <input type="checkbox" checked={newline} onChange={(event) => setNewline(event.currentTarget.checked)} /> with a
        line end
      </label>
      <Button type="submit" busy={busy}>
        Send
      </Button>
      <Button busy={busy} onClick={() => void send("", true)} title="Closes its stdin">
        End of input
      </Button>
      <CopyAs what="Send input" spellings={() => processSpellings.stdin(sandboxId, processId, typed)} />
    </form>
  );
}
