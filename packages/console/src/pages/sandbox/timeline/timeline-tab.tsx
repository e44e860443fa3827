import type { SandboxRecord } from "@sandboxer/client";
import type { JSX } from "preact";
import { useEffect, useMemo, useRef, useState } from "preact/hooks";
import { nowMs } from "../../../live/clock.ts";
import { Button } from "../../../ui/button.tsx";
import { ErrorBox } from "../../../ui/error-box.tsx";
import { bandsOf } from "./bands.ts";
import { Chart } from "./chart.tsx";
import { MarkDetails } from "./mark-details.tsx";
import { marksOf } from "./marks.ts";
import { pan, zoom, type Range } from "./scale.ts";
import { TimelineTable } from "./timeline-table.tsx";
import { useTimeline } from "./use-timeline.ts";
import "./timeline.css";

const SPANS = [
  { name: "15 min", lengthMs: 15 * 60_000 },
  { name: "1 h", lengthMs: 3_600_000 },
  { name: "All", lengthMs: Infinity },
] as const;

/** A span that ends now and moves with the time, or a range that the user chose. */
type Looked = { readonly lengthMs: number } | Range;

/** The history of a sandbox, as far as this server recorded it. */
export function TimelineTab({ record }: { readonly record: SandboxRecord }): JSX.Element {
  const { loaded, error, events, operations, reload } = useTimeline(record.id);
  const now = nowMs.value;
  const [looked, setLooked] = useState<Looked>({ lengthMs: Infinity });
  const [selectedId, setSelectedId] = useState<string | undefined>(undefined);
  const details = useRef<HTMLDivElement>(null);
  useEffect(() => details.current?.scrollIntoView({ block: "nearest" }), [selectedId]);
  const marks = useMemo(() => marksOf(events, operations), [events, operations]);
  const bands = useMemo(() => bandsOf(events, record, now), [events, record, now]);
  const whole: Range = useMemo(() => {
    const first = Math.min(bands[0]?.startMs ?? now, marks[0]?.startMs ?? now);
    return { startMs: first, endMs: Math.max(now, first + 1_000) };
  }, [bands, marks, now]);
  const range = rangeOf(looked, whole);
  const change = (next: (range: Range) => Range): void => setLooked((before) => next(rangeOf(before, whole)));
  const selected = marks.find(({ id }) => id === selectedId);
  if (error !== undefined) {
    return (
      <ErrorBox error={error}>
        <Button onClick={reload}>Try again</Button>
      </ErrorBox>
    );
  }
  if (!loaded) return <p class="page-note">Loading …</p>;
  return (
    <div class="stack timeline">
      <div class="row" role="group" aria-label="Time range">
        {SPANS.map(({ name, lengthMs }) => (
          <Button
            key={name}
            pressed={"lengthMs" in looked && looked.lengthMs === lengthMs}
            onClick={() => setLooked({ lengthMs })}
          >
            {name}
          </Button>
        ))}
        <Button label="Earlier" onClick={() => change((before) => pan(before, -0.5, whole))}>
          ←
        </Button>
        <Button label="Later" onClick={() => change((before) => pan(before, 0.5, whole))}>
          →
        </Button>
        <Button label="Zoom out" onClick={() => change((before) => zoom(before, 0.5, 0.5, whole))}>
          −
        </Button>
        <Button label="Zoom in" onClick={() => change((before) => zoom(before, 2, 0.5, whole))}>
          +
        </Button>
        {"lengthMs" in looked ? <span class="chip chip-running">following</span> : null}
      </div>
      <div class="card timeline-card">
        <Chart
          bands={bands}
          marks={marks}
          range={range}
          whole={whole}
          nowMs={now}
          selectedId={selectedId}
          onRange={change}
          onSelect={({ id }) => setSelectedId(id)}
        />
      </div>
      <p class="hint">
        Events that this server recorded since it started. Other servers keep their own. Drag to move; hold Ctrl and
        scroll to zoom.
      </p>
      <div aria-live="polite" ref={details}>
        {selected === undefined ? null : (
          <MarkDetails mark={selected} sandboxId={record.id} onClose={() => setSelectedId(undefined)} />
        )}
      </div>
      <TimelineTable bands={bands} marks={marks} selectedId={selectedId} onSelect={({ id }) => setSelectedId(id)} />
    </div>
  );
}

function rangeOf(looked: Looked, whole: Range): Range {
  if (!("lengthMs" in looked)) return looked;
  const length = Math.min(looked.lengthMs, whole.endMs - whole.startMs);
  const margin = length * 0.02;
  const startMs = whole.endMs - length - (looked.lengthMs === Infinity ? margin : 0);
  return { startMs, endMs: whole.endMs + margin };
}
