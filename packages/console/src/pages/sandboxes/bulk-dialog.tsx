import { signal } from "@preact/signals";
import type { SandboxerError, SandboxRecord } from "@sandboxer/client";
import type { JSX } from "preact";
import { useEffect, useRef, useState } from "preact/hooks";
import type { SandboxAction } from "../../actions/sandbox-actions.ts";
import { sandboxTitle } from "../../format/names.ts";
import { refreshSandbox } from "../../live/sandboxes.ts";
import { Link } from "../../router.tsx";
import { asError } from "../../session.ts";
import { Button } from "../../ui/button.tsx";
import { SpellingList } from "../../ui/copy-as.tsx";
import { Dialog } from "../../ui/dialog.tsx";
import { tell, tellError } from "../../ui/toasts.tsx";
import { clearSelection } from "./selection.ts";

/** How many at once: a server has other work too. */
const AT_ONCE = 4;

interface BulkRequest {
  readonly action: SandboxAction;
  /** As selected, whatever changes in the list. */
  readonly chosen: readonly SandboxRecord[];
}

/** A requested bulk action; it outlives its targets. */
export const bulkRequest = signal<BulkRequest | undefined>(undefined);

export function RequestedBulk(): JSX.Element | null {
  const { value } = bulkRequest;
  return value === undefined ? null : <BulkDialog {...value} onClose={() => (bulkRequest.value = undefined)} />;
}

interface Failure {
  readonly record: SandboxRecord;
  readonly error: SandboxerError;
}

interface BulkDialogProperties extends BulkRequest {
  readonly onClose: () => void;
}

function BulkDialog({ action, chosen, onClose }: BulkDialogProperties): JSX.Element {
  // The targets are those that the user saw, whatever the list shows by then.
  const [targets] = useState(() => chosen.filter((record) => action.applies(record)));
  const [done, setDone] = useState<number>();
  const [failures, setFailures] = useState<readonly Failure[]>([]);
  const running = done !== undefined && done < targets.length;
  const shown = useRef(true);
  useEffect(() => () => void (shown.current = false), []);
  const run = async (): Promise<void> => {
    setDone(0);
    const waiting = [...targets];
    let failed = 0;
    const work = async (): Promise<void> => {
      for (let record = waiting.shift(); record !== undefined; record = waiting.shift()) {
        const failure = await attempt(action, record);
        if (failure !== undefined) {
          failed += 1;
          if (shown.current) setFailures((known) => [...known, failure]);
          else tellError(`${action.name}: ${sandboxTitle(record)}`, failure.error);
        }
        setDone((count = 0) => count + 1);
      }
    };
    await Promise.all(Array.from({ length: AT_ONCE }, work));
    if (!shown.current) tell(`${action.name}: ${targets.length - failed} of ${targets.length} done`);
  };
  const close = (): void => {
    onClose();
    // Done: clear the selection.
    if (done !== undefined) clearSelection();
  };
  const passed = chosen.length - targets.length;
  return (
    <Dialog title={`${action.name}: ${targets.length}`} onClose={close}>
      <div class="stack">
        {action.confirm === undefined ? null : <p>{action.confirm}</p>}
        {passed === 0 ? null : (
          <p class="hint">{passed} of the selected are skipped: the action does not apply to them.</p>
        )}
        <ul class="bulk-targets" aria-label="Sandboxes" tabIndex={0}>
          {targets.map((record) => (
            <li key={record.id}>{sandboxTitle(record)}</li>
          ))}
        </ul>
        {done === undefined ? null : (
          <p role="status">
            {done} of {targets.length} done{failures.length === 0 ? "" : `, ${failures.length} failed`}
          </p>
        )}
        {failures.length === 0 ? null : (
          <ul class="error-box" role="alert">
            {failures.map(({ record, error }) => (
              <li key={record.id}>
                <Link to={`/sandboxes/${encodeURIComponent(record.id)}`}>{sandboxTitle(record)}</Link>: {error.message}{" "}
                <code>{error.code}</code> <span class="error-hint">{error.hint}</span>
              </li>
            ))}
          </ul>
        )}
        {running ? <p class="hint">It continues when you close this; a notification reports the result.</p> : null}
        <div class="row">
          {done === undefined ? (
            <Button kind={action.danger === true ? "danger" : "primary"} onClick={() => void run()}>
              {action.name} {targets.length}
            </Button>
          ) : null}
          <Button onClick={close}>{done === undefined ? "Cancel" : "Close"}</Button>
        </div>
        <details>
          <summary>Copy as command, program or curl</summary>
          <SpellingList spellings={spellAll(action, targets)} />
        </details>
      </div>
    </Dialog>
  );
}

async function attempt(action: SandboxAction, record: SandboxRecord): Promise<Failure | undefined> {
  try {
    await action.run(record, () => {});
    return undefined;
  } catch (thrown) {
    return { record, error: asError(thrown) };
  } finally {
    void refreshSandbox(record.id);
  }
}

function spellAll(
  action: SandboxAction,
  records: readonly SandboxRecord[],
): { cli: string; sdk: string; curl: string } {
  const all = records.map((record) => action.spell(record));
  return {
    cli: all.map(({ cli }) => cli).join("\n"),
    sdk: all.map(({ sdk }) => sdk).join("\n\n"),
    curl: all.map(({ curl }) => curl).join("\n"),
  };
}
