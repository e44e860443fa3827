import type { ProcessRecord } from "@sandboxer/client";
import type { JSX } from "preact";
import { useState } from "preact/hooks";
import { processSpellings } from "../../../actions/process-actions.ts";
import { Button } from "../../../ui/button.tsx";
import { CopyAs } from "../../../ui/copy-as.tsx";
import { Dialog } from "../../../ui/dialog.tsx";
import { tell, tellError } from "../../../ui/toasts.tsx";
import { removeProcess, sendSignal } from "./process-calls.ts";

const SIGNALS = [
  "SIGINT",
  "SIGTERM",
  "SIGKILL",
  "SIGHUP",
  "SIGQUIT",
  "SIGUSR1",
  "SIGUSR2",
  "SIGSTOP",
  "SIGCONT",
] as const;

export interface ProcessSignalsProperties {
  readonly sandboxId: string;
  readonly process: ProcessRecord;
  readonly onChanged: () => void;
  readonly onRemoved: () => void;
}

export function ProcessSignals({ sandboxId, process, onChanged, onRemoved }: ProcessSignalsProperties): JSX.Element {
  const [signal, setSignal] = useState<string>("SIGTERM");
  const [asking, setAsking] = useState(false);
  const running = process.state === "running";
  const attempt = async (doing: string, work: () => Promise<void>, done: () => void): Promise<void> => {
    try {
      await work();
      done();
    } catch (thrown) {
      tellError(doing, thrown);
    }
  };
  const send = (): Promise<void> =>
    attempt(
      "The signal was not sent",
      () => sendSignal(sandboxId, process.id, signal),
      () => {
        tell(`${signal} was sent.`);
        onChanged();
      },
    );
  const remove = (): Promise<void> =>
    attempt("The process was not removed", () => removeProcess(sandboxId, process.id), onRemoved);
  return (
    <div class="row">
      {running ? (
        <>
          <label for="process-signal">Signal</label>
          <select id="process-signal" value={signal} onChange={(event) => setSignal(event.currentTarget.value)}>
            {SIGNALS.map((name) => (
              <option key={name} value={name}>
                {name.slice(3)}
              </option>
            ))}
          </select>
          <Button onClick={() => void send()}>Send signal</Button>
          <CopyAs what="Send a signal" spellings={() => processSpellings.signal(sandboxId, process.id, signal)} />
        </>
      ) : null}
      <Button kind="danger" onClick={() => (running ? setAsking(true) : void remove())}>
        Remove
      </Button>
      <CopyAs what="Remove a process" spellings={() => processSpellings.remove(sandboxId, process.id)} />
      {asking ? (
        <Dialog title="Remove the process?" onClose={() => setAsking(false)}>
          <p>The process is running. This kills it and its children and deletes its output.</p>
          <p class="row">
            <Button kind="danger" onClick={() => void remove()}>
              Kill and remove
            </Button>
            <Button onClick={() => setAsking(false)}>Cancel</Button>
          </p>
        </Dialog>
      ) : null}
    </div>
  );
}
