import type { ComponentChildren, JSX } from "preact";
import type { Spellings } from "../actions/spellings.ts";
import { Button } from "../ui/button.tsx";
import { SpellingList } from "../ui/copy-as.tsx";
import { Dialog } from "../ui/dialog.tsx";
import { ErrorBox } from "../ui/error-box.tsx";
import { OperationProgress } from "../ui/operation-progress.tsx";
import type { LongCall } from "./use-long-call.ts";

interface ActionDialogProperties<Result> {
  readonly title: string;
  readonly onClose: () => void;
  /** The label of the submit button. */
  readonly submit: string;
  readonly danger?: boolean;
  /** False while something is missing or impossible. */
  readonly ready?: boolean;
  readonly call: LongCall<Result>;
  readonly onSubmit: () => void;
  /** The same action in other forms; undefined while it is incomplete. */
  readonly spellings: (() => Spellings) | undefined;
  readonly children: ComponentChildren;
  /** Shown in place of the form when it is done. */
  readonly done: (result: Result) => ComponentChildren;
  /** Shown with an error besides its message. */
  readonly more?: ComponentChildren;
}

/** A form for one action: its fields, progress, result, and other forms. */
export function ActionDialog<Result>(properties: ActionDialogProperties<Result>): JSX.Element {
  const { title, onClose, call } = properties;
  return (
    <Dialog title={title} onClose={onClose}>
      {call.state === "done" && call.result !== undefined ? (
        <div class="stack">
          <div role="status">{properties.done(call.result)}</div>
          {call.operation === undefined ? null : <OperationProgress operation={call.operation} />}
          <div class="row dialog-buttons">
            <Button kind="primary" onClick={onClose}>
              Close
            </Button>
          </div>
        </div>
      ) : (
        <ActionForm {...properties} />
      )}
    </Dialog>
  );
}

function ActionForm<Result>(properties: ActionDialogProperties<Result>): JSX.Element {
  const { call, danger = false, ready = true, submit, onSubmit, onClose, spellings } = properties;
  const running = call.state === "running";
  const send = (event: Event): void => {
    event.preventDefault();
    if (!running) onSubmit();
  };
  return (
    <form class="stack" onSubmit={send}>
      <fieldset class="dialog-fields stack" disabled={running}>
        {properties.children}
      </fieldset>
      {running && call.operation !== undefined ? <OperationProgress operation={call.operation} /> : null}
      {call.error === undefined ? null : <ErrorBox error={call.error}>{properties.more}</ErrorBox>}
      {running ? <p class="hint">It continues when you close this; a notification reports the result.</p> : null}
      <div class="row dialog-buttons">
        <Button onClick={onClose}>{running ? "Close" : "Cancel"}</Button>
        <Button type="submit" kind={danger ? "danger" : "primary"} busy={running} disabled={!ready}>
          {submit}
        </Button>
      </div>
      {spellings === undefined ? null : (
        <details>
          <summary>Copy as command, program or curl</summary>
          <SpellingList spellings={spellings()} />
        </details>
      )}
    </form>
  );
}
