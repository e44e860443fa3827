import type { ProcessRecord } from "@sandboxer/client";
import type { JSX } from "preact";
import { processSpellings } from "../../../actions/process-actions.ts";
import { formatBytes } from "../../../format/bytes.ts";
import { may } from "../../../session.ts";
import { Button } from "../../../ui/button.tsx";
import { CopyAs } from "../../../ui/copy-as.tsx";
import { letGoOn } from "./process-calls.ts";
import { commandText, stateOf } from "./process-list.tsx";
import { ProcessOutput } from "./process-output.tsx";
import { ProcessSignals } from "./process-signals.tsx";
import { ProcessStdin } from "./process-stdin.tsx";

export interface ProcessDetailProperties {
  readonly sandboxId: string;
  readonly process: ProcessRecord;
  readonly onChanged: () => void;
  readonly onClose: () => void;
}

/** A process that is not detached blocks when this much output is unread. */
const FULL_BYTES = 900 * 1024;

export function ProcessDetail({ sandboxId, process, onChanged, onClose }: ProcessDetailProperties): JSX.Element {
  const { id, pid, state, pty, detached, outputStart, outputEnd, acknowledged } = process;
  const waits = state === "running" && !detached && outputEnd - acknowledged > FULL_BYTES;
  return (
    <section class="card process-detail" aria-label={`Process ${pid}`}>
      <header class="row">
        <h2 class="process-command mono">{commandText(process)}</h2>
        <span role="status" class={`chip ${stateOf(process).chip}`}>
          {stateOf(process).text}
        </span>
        <CopyAs what="Read the output" spellings={() => processSpellings.output(sandboxId, id, outputStart)} />
        <span class="process-close">
          <Button kind="quiet" label="Close the process" onClick={onClose}>
            ✕
          </Button>
        </span>
      </header>
      <p class="hint">
        pid {pid} · <span class="mono">{id}</span> · {pty ? "terminal · " : ""}
        output from byte {outputStart} to {outputEnd}, received up to {acknowledged}
      </p>
      {waits ? (
        <p class="banner banner-warn">
          The process waits because {formatBytes(outputEnd - acknowledged)} of its output are unread.
          {may("use") ? (
            <Button onClick={() => void letGoOn(sandboxId, id, outputEnd)}>
              Discard it and let the process continue
            </Button>
          ) : null}
        </p>
      ) : null}
      <ProcessOutput sandboxId={sandboxId} process={process} />
      {state === "running" && may("use") ? <ProcessStdin sandboxId={sandboxId} processId={id} /> : null}
      {may("use") ? (
        <ProcessSignals
          sandboxId={sandboxId}
          process={process}
          onChanged={onChanged}
          onRemoved={() => {
            onClose();
            onChanged();
          }}
        />
      ) : null}
    </section>
  );
}
