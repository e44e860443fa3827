import type { JSX } from "preact";
import { useEffect, useMemo } from "preact/hooks";
import { damagedSandboxes } from "../../live/damage.ts";
import { sandboxes, sandboxesState, unreadableSandboxes } from "../../live/sandboxes.ts";
import { useUsage } from "../../live/usage.ts";
import { query, setQuery } from "../../router.tsx";
import { may } from "../../session.ts";
import { Button } from "../../ui/button.tsx";
import { ErrorBox } from "../../ui/error-box.tsx";
import { AtRiskNotice } from "./at-risk-notice.tsx";
import { BulkActions } from "./bulk-actions.tsx";
import { RequestedBulk } from "./bulk-dialog.tsx";
import { ordered } from "./columns.tsx";
import { DamagedNotice } from "./damaged-notice.tsx";
import { FilterBar } from "./filter-bar.tsx";
import { filterOf, isFiltered, matches } from "./filter.ts";
import { FirstSteps } from "./first-steps.tsx";
import { askForSandbox } from "./new/ask-for-sandbox.ts";
import { SandboxTable } from "./sandbox-table.tsx";
import { clearSelection, selected } from "./selection.ts";
import "./sandboxes.css";

export function SandboxesPage(): JSX.Element {
  useUsage();
  useEffect(() => clearSelection, []);
  const known = sandboxes.value;
  const damaged = unreadableSandboxes.value;
  const { value: asked } = query;
  const records = useMemo(() => [...known.values()], [known]);
  const filter = useMemo(() => filterOf(asked), [asked]);
  const [by, descending] = [asked.get("sort") ?? "", asked.get("order") === "descending"];
  const shown = useMemo(
    () =>
      ordered(
        records.filter((record) => matches(record, filter)),
        { by, descending },
      ),
    [records, filter, by, descending, damagedSandboxes.value],
  );
  const chosen = useMemo(() => records.filter(({ id }) => selected.value.has(id)), [records, selected.value]);
  const { loaded, error } = sandboxesState.value;
  return (
    <section class="page">
      <header class="row sandboxes-title">
        <h1>Sandboxes</h1>
        <span class="hint" role="status">
          {loaded ? countText(shown.length, records.length) : "Loading …"}
        </span>
        {may("use") ? (
          <Button kind="primary" onClick={askForSandbox}>
            New sandbox
          </Button>
        ) : null}
      </header>
      {error === undefined ? null : <ErrorBox error={error} />}
      <DamagedNotice damaged={damaged} />
      {loaded && records.length + damaged.length === 0 ? <FirstSteps onNew={askForSandbox} /> : null}
      {records.length === 0 ? null : (
        <>
          <AtRiskNotice records={records} />
          <FilterBar filter={filter} records={records} />
          {chosen.length === 0 ? null : <BulkActions chosen={chosen} />}
          {shown.length === 0 ? <NoMatch filtered={isFiltered(filter)} /> : null}
          <SandboxTable records={shown} by={by} descending={descending} />
        </>
      )}
      <RequestedBulk />
    </section>
  );
}

function countText(shown: number, all: number): string {
  return shown === all ? `${all}` : `${shown} of ${all}`;
}

function NoMatch({ filtered }: { readonly filtered: boolean }): JSX.Element | null {
  if (!filtered) return null;
  const clear = (): void =>
    setQuery({ q: undefined, state: undefined, backend: undefined, label: undefined, badge: undefined });
  return (
    <div class="card row">
      No sandbox matches. <Button onClick={clear}>Show all</Button>
    </div>
  );
}
