import type { SandboxRecord } from "@sandboxer/client";
import type { JSX } from "preact";
import { setQuery } from "../../router.tsx";
import { badgeTexts, choices, labelTexts, shownState, type Filter } from "./filter.ts";

interface FilterBarProperties {
  readonly filter: Filter;
  readonly records: readonly SandboxRecord[];
}

const SHOWN_CHOICES = 200;

export function FilterBar({ filter, records }: FilterBarProperties): JSX.Element {
  return (
    <search class="filter-bar">
      <input
        id="search"
        type="search"
        aria-label="Search by name, id, key, label or profile"
        placeholder="Search (press /)"
        value={filter.text}
        onInput={(event) => setQuery({ q: event.currentTarget.value })}
      />
      <Choice
        name="state"
        value={filter.state}
        all="Any state"
        found={choices(records, (record) => [shownState(record)])}
      />
      <Choice
        name="backend"
        value={filter.backend}
        all="Any backend"
        found={choices(records, ({ backend }) => [backend])}
      />
      <Choice name="badge" value={filter.badge} all="Any badge" found={choices(records, badgeTexts)} />
      <Choice name="label" value={filter.label} all="Any label" found={choices(records, labelTexts)} />
    </search>
  );
}

interface ChoiceProperties {
  readonly name: string;
  readonly value: string;
  readonly all: string;
  readonly found: readonly (readonly [string, number])[];
}

function Choice({ name, value, all, found }: ChoiceProperties): JSX.Element {
  const shown = found.slice(0, SHOWN_CHOICES);
  // A value from a link is offered even if nothing has it now.
  const missing = value !== "" && !shown.some(([text]) => text === value);
  return (
    <select
      aria-label={`Filter by ${name}`}
      value={value}
      onChange={(event) => setQuery({ [name]: event.currentTarget.value })}
    >
      <option value="">{all}</option>
      {missing ? <option value={value}>{value}</option> : null}
      {shown.map(([text, count]) => (
        <option key={text} value={text}>
          {text} ({count})
        </option>
      ))}
    </select>
  );
}
