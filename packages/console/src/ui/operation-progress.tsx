import type { OperationRecord } from "@sandboxer/client";
import type { JSX } from "preact";
import { useMemo } from "preact/hooks";
import { formatBytes } from "../format/bytes.ts";
import { formatMilliseconds, formatSeconds } from "../format/duration.ts";
import { operationTitle, transferOf } from "../format/operation.ts";
import { nowMs } from "../live/clock.ts";
import "./operation-progress.css";

/** A running operation: its phases and bytes; at its end, the pause or the error. */
export function OperationProgress({ operation }: { readonly operation: OperationRecord }): JSX.Element {
  const { kind, state, error } = operation;
  return (
    <section class={`operation operation-${state}`} aria-label={`${operationTitle(kind)}: ${state}`}>
      <header class="operation-header">
        <strong>{operationTitle(kind)}</strong>
        <span class={`chip chip-${CHIPS[state]}`} role="status">
          {state === "running" ? (operation.phase ?? "running") : state}
        </span>
        <Elapsed operation={operation} />
      </header>
      {state === "running" ? <TransferBar operation={operation} /> : null}
      <Phases operation={operation} />
      <Pause operation={operation} />
      {error === null ? null : (
        <div class="error-box" role="alert">
          <p>
            <strong>{error.message}</strong> <code>{error.code}</code>
          </p>
          <p class="error-hint">{error.hint}</p>
        </div>
      )}
    </section>
  );
}

const CHIPS = { running: "saving", done: "running", failed: "failed" } as const;

/** Advances between two records of the server; its clock need not match the browser's. */
function Elapsed({ operation }: { readonly operation: OperationRecord }): JSX.Element {
  const receivedAtMs = useMemo(() => Date.now(), [operation]);
  const sinceMs = operation.state === "running" ? Math.max(0, nowMs.value - receivedAtMs) : 0;
  return <span class="operation-elapsed">{formatMilliseconds(operation.elapsedMs + sinceMs)}</span>;
}

function TransferBar({ operation }: { readonly operation: OperationRecord }): JSX.Element {
  const transfer = transferOf(operation);
  const label = `Progress of ${operationTitle(operation.kind)}`;
  if (transfer === undefined) return <progress class="operation-bar" aria-label={label} />;
  const { doneBytes, totalBytes, bytesPerSecond, secondsLeft } = transfer;
  return (
    <div>
      {totalBytes === undefined ? (
        <progress class="operation-bar" aria-label={label} />
      ) : (
        <progress class="operation-bar" aria-label={label} max={totalBytes} value={Math.min(doneBytes, totalBytes)} />
      )}
      <p class="operation-bytes">
        <span>
          {formatBytes(doneBytes)}
          {totalBytes === undefined ? "" : ` of ${formatBytes(totalBytes)}`}
        </span>
        <span>{bytesPerSecond > 0 ? `${formatBytes(bytesPerSecond)}/s` : ""}</span>
        <span>{secondsLeft === undefined ? "" : `${formatSeconds(Math.ceil(secondsLeft))} left`}</span>
      </p>
    </div>
  );
}

function Phases({ operation: { phases, phase } }: { readonly operation: OperationRecord }): JSX.Element | null {
  const ended = Object.entries(phases);
  if (ended.length === 0 && phase === null) return null;
  return (
    <ol class="operation-phases" aria-label="Phases">
      {ended.map(([name, milliseconds]) => (
        <li key={name}>
          <span>{name}</span> <span class="operation-ms">{formatMilliseconds(milliseconds)}</span>
        </li>
      ))}
      {phase === null ? null : (
        <li key="now" class="operation-phase-now">
          <span>{phase}</span> <span class="operation-ms">now</span>
        </li>
      )}
    </ol>
  );
}

function Pause({ operation: { pausedMs } }: { readonly operation: OperationRecord }): JSX.Element | null {
  if (pausedMs === null) return null;
  return (
    <p class="operation-pause">
      Programs were paused for <strong>{formatMilliseconds(pausedMs)}</strong>.
    </p>
  );
}
