import { Sandbox, type SandboxRecord } from "@sandboxer/client";
import type { JSX } from "preact";
import { useState } from "preact/hooks";
import { usePolled } from "../../../live/use-polled.ts";
import { client } from "../../../session.ts";
import { Button } from "../../../ui/button.tsx";
import { CopyAs } from "../../../ui/copy-as.tsx";
import { ErrorBox } from "../../../ui/error-box.tsx";
import { usageSpellings } from "./usage-spellings.ts";
import { Plot } from "./plot.tsx";
import { measuresOf, sinceMinutes, type Measure } from "./series.ts";
import "./metrics.css";

const EVERY_MS = 2_000;
const RANGES = [5, 30] as const;

/** The sandbox's use of CPU, memory and disk over time, with its limits. */
export function MetricsTab({ record }: { readonly record: SandboxRecord }): JSX.Element {
  const [minutes, setMinutes] = useState<number>(RANGES[0]);
  const { value, error } = usePolled(record.id, EVERY_MS, async (signal) =>
    (await Sandbox.attach(record.id, { client, autoResume: false, signal })).usage({ signal }),
  );
  const measures = value === undefined ? [] : measuresOf(sinceMinutes(value, minutes));
  return (
    <div class="metrics">
      <div class="row" role="group" aria-label="Time range">
        {RANGES.map((range) => (
          <Button key={range} pressed={range === minutes} onClick={() => setMinutes(range)}>
            {range} minutes
          </Button>
        ))}
        <CopyAs what="Metrics" spellings={() => usageSpellings(record.id)} />
      </div>
      {error === undefined ? null : <ErrorBox error={error} />}
      {value !== undefined && value.used.time.length === 0 ? <p class="hint">Waiting for the first point …</p> : null}
      {measures.map((measure) => (
        <MeasureCard key={measure.title} measure={measure} minutes={minutes} />
      ))}
    </div>
  );
}

function MeasureCard({ measure, minutes }: { readonly measure: Measure; readonly minutes: number }): JSX.Element {
  const { title, values, limit, format } = measure;
  const known = values.filter((value) => value !== null);
  const [now, most] = [known.at(-1), Math.max(0, ...known)];
  return (
    <section class="card" aria-label={title}>
      <header class="row metrics-title">
        <h2>{title}</h2>
        <span>
          {now === undefined ? "–" : format(now)}
          {limit === null ? "" : ` of ${format(limit)}`}
        </span>
      </header>
      <Plot measure={measure} minutes={minutes} />
      <p class="visually-hidden">
        {known.length} points; now {now === undefined ? "unknown" : format(now)}, at most {format(most)}.
      </p>
      <details>
        <summary>As numbers</summary>
        <PointTable measure={measure} />
      </details>
    </section>
  );
}

const TABLE_ROWS = 30;

function PointTable({ measure: { title, times, values, format } }: { readonly measure: Measure }): JSX.Element {
  const newest = times
    .map((time, index) => ({ time, value: values[index] ?? null }))
    .toReversed()
    .slice(0, TABLE_ROWS);
  return (
    <table>
      <thead>
        <tr>
          <th scope="col">Time</th>
          <th scope="col">{title}</th>
        </tr>
      </thead>
      <tbody>
        {newest.map(({ time, value }) => (
          <tr key={time}>
            <td>{new Date(time * 1000).toLocaleTimeString()}</td>
            <td>{value === null ? "–" : format(value)}</td>
          </tr>
        ))}
      </tbody>
    </table>
  );
}
