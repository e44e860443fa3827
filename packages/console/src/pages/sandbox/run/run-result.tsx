import type { CellStatus } from "@sandboxer/client";
import type { JSX } from "preact";
import { formatMilliseconds } from "../../../format/duration.ts";
import { Button } from "../../../ui/button.tsx";
import { copyText } from "../../../ui/copy-text.ts";
import { ErrorBox } from "../../../ui/error-box.tsx";
import { OutputView } from "../output-view.tsx";
import { CellResultView } from "./cell-result.tsx";
import type { RunRecord } from "./run-history.ts";

const CELL_ENDS: Readonly<Record<CellStatus, string>> = {
  ok: "done",
  error: "error",
  interrupted: "interrupted",
  died: "the interpreter ended, its variables are lost",
};

export function RunResult({ run, onEdit }: { readonly run: RunRecord; readonly onEdit: () => void }): JSX.Element {
  const { number, output, results, error } = run;
  const { as, language, code } = run.request;
  const ended = outcome(run);
  return (
    <article class="card run-result" aria-label={`Run ${number}`}>
      <header class="row">
        <strong>#{number}</strong>
        <span>{as === "cell" ? `${language} cell` : language}</span>
        <span role="status" class={`chip chip-${ended.chip}`}>
          {ended.text}
        </span>
        {run.elapsedMs === undefined ? null : <span class="hint">{formatMilliseconds(run.elapsedMs)}</span>}
        <span class="run-tools">
          <Button kind="quiet" onClick={onEdit} title="Copy this code to the editor">
            Edit again
          </Button>
          <Button kind="quiet" onClick={() => void copyText(output.map(({ text }) => text).join(""), "the output")}>
            Copy output
          </Button>
        </span>
      </header>
      <details>
        <summary>{firstLine(code)}</summary>
        <pre class="run-source">{code}</pre>
      </details>
      {error === undefined ? null : <ErrorBox error={error} />}
      {output.length + results.length === 0 && run.state === "done" ? <p class="hint">No output.</p> : null}
      {output.length === 0 ? null : (
        <OutputView label={`Output of run ${number}`} parts={output} droppedBytes={run.droppedBytes} />
      )}
      {results.map((result, index) => (
        <CellResultView key={index} result={result} label={`Result ${index + 1} of run ${number}`} />
      ))}
    </article>
  );
}

function outcome({ state, exit, status }: RunRecord): { readonly text: string; readonly chip: string } {
  if (state === "running") return { text: "running", chip: "saving" };
  if (status !== undefined) return { text: CELL_ENDS[status], chip: status === "ok" ? "running" : "failed" };
  if (state === "failed" || exit === undefined) return { text: "interrupted", chip: "failed" };
  if (exit.signal !== null) return { text: `ended by ${exit.signal}`, chip: "failed" };
  return { text: `exit code ${exit.exitCode}`, chip: exit.exitCode === 0 ? "running" : "failed" };
}

function firstLine(code: string): string {
  const line = code.trim().split("\n", 1)[0] ?? "";
  return line.length > 80 ? `${line.slice(0, 80)}…` : line;
}
