import { stateWord } from "@sandboxer/protocol/state-word";
import type { JSX } from "preact";
import { useId, useState } from "preact/hooks";
import { formatMilliseconds } from "../../../format/duration.ts";
import { Button } from "../../../ui/button.tsx";
import type { Band } from "./bands.ts";
import { LANES, laneTitle } from "./lanes.ts";
import type { Mark, MarkKind } from "./marks.ts";

const PAGE = 100;
type Filter = MarkKind | "state" | "all";

interface Line {
  readonly id: string;
  readonly kind: MarkKind | "state";
  readonly title: string;
  readonly outcome: string;
  readonly failed: boolean;
  readonly startMs: number;
  readonly endMs: number | undefined;
  readonly mark: Mark | undefined;
}

/** The same as the chart, as a table; newest first. */
export function TimelineTable({
  bands,
  marks,
  selectedId,
  onSelect,
}: {
  readonly bands: readonly Band[];
  readonly marks: readonly Mark[];
  readonly selectedId: string | undefined;
  readonly onSelect: (mark: Mark) => void;
}): JSX.Element {
  const [filter, setFilter] = useState<Filter>("all");
  const [search, setSearch] = useState("");
  const [shown, setShown] = useState(PAGE);
  const id = useId();
  const wanted = search.toLowerCase();
  const lines = linesOf(bands, marks).filter(
    ({ kind, title, outcome }) =>
      (filter === "all" || kind === filter) && `${title} ${outcome}`.toLowerCase().includes(wanted),
  );
  return (
    <section class="stack" aria-label="List of events">
      <div class="row">
        <label for={`${id}-kind`}>Show</label>
        <select id={`${id}-kind`} value={filter} onChange={(event) => setFilter(event.currentTarget.value as Filter)}>
          <option value="all">Everything</option>
          <option value="state">States</option>
          {LANES.map((kind) => (
            <option key={kind} value={kind}>
              {laneTitle(kind)}
            </option>
          ))}
        </select>
        <label class="visually-hidden" for={`${id}-search`}>
          Search events
        </label>
        <input
          id={`${id}-search`}
          type="search"
          placeholder="Search"
          value={search}
          onInput={(event) => setSearch(event.currentTarget.value)}
        />
        <span class="hint" role="status">
          {lines.length.toLocaleString()} found
        </span>
      </div>
      <div class="timeline-table" tabIndex={0} role="region" aria-label="Events">
        <table>
          <thead>
            <tr>
              <th scope="col">Time</th>
              <th scope="col">Event</th>
              <th scope="col">Outcome</th>
              <th scope="col">Duration</th>
            </tr>
          </thead>
          <tbody>
            {lines.slice(0, shown).map((line) => (
              <Row key={line.id} line={line} selected={line.id === selectedId} onSelect={onSelect} />
            ))}
          </tbody>
        </table>
      </div>
      {lines.length > shown ? (
        <Button onClick={() => setShown(shown + PAGE)}>Show {Math.min(PAGE, lines.length - shown)} more</Button>
      ) : null}
    </section>
  );
}

function Row({
  line,
  selected,
  onSelect,
}: {
  readonly line: Line;
  readonly selected: boolean;
  readonly onSelect: (mark: Mark) => void;
}): JSX.Element {
  const { title, outcome, failed, startMs, endMs, mark } = line;
  const time = new Date(startMs);
  return (
    <tr class={selected ? "timeline-row-selected" : ""}>
      <td class="timeline-when">
        <time dateTime={time.toISOString()} title={time.toLocaleString()}>
          {time.toLocaleTimeString()}
        </time>
      </td>
      <td class="timeline-what">
        {mark === undefined ? (
          title
        ) : (
          <button type="button" class="link" onClick={() => onSelect(mark)}>
            {title === "" ? "(nothing)" : title}
          </button>
        )}
      </td>
      <td>{outcome === "" ? "" : <span class={failed ? "chip chip-failed" : "chip"}>{outcome}</span>}</td>
      <td class="timeline-when">
        {endMs === undefined ? "running" : endMs > startMs ? formatMilliseconds(endMs - startMs) : ""}
      </td>
    </tr>
  );
}

function linesOf(bands: readonly Band[], marks: readonly Mark[]): readonly Line[] {
  const states = bands.map(({ state, startMs, endMs, now }): Line => ({
    id: `state:${state}:${startMs}`,
    kind: "state",
    title: `State: ${stateWord(state)}`,
    outcome: "",
    failed: false,
    startMs,
    endMs: now ? undefined : endMs,
    mark: undefined,
  }));
  return [...states, ...marks.map((mark) => ({ ...mark, mark }))].toSorted((a, b) => b.startMs - a.startMs);
}
