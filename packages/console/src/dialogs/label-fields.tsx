import type { JSX } from "preact";
import type { Labels } from "../actions/snapshot-actions.ts";
import { Button } from "../ui/button.tsx";

/** As typed: a key may be empty or duplicated for a moment. */
export type LabelRows = readonly (readonly [key: string, value: string])[];

export function rowsOfLabels(labels: Labels): LabelRows {
  return Object.entries(labels);
}

/** Rows without a key are ignored. */
export function labelsOfRows(rows: LabelRows): Labels {
  return Object.fromEntries(rows.filter(([key]) => key !== ""));
}

export function LabelFields({
  rows,
  onChange,
}: {
  readonly rows: LabelRows;
  readonly onChange: (rows: LabelRows) => void;
}): JSX.Element {
  const change = (index: number, row: readonly [string, string]): void => onChange(rows.with(index, row));
  return (
    <fieldset class="label-fields">
      <legend>Labels</legend>
      {rows.map(([key, value], index) => (
        <div key={index} class="label-row">
          <input
            aria-label={`Key of label ${index + 1}`}
            placeholder="key"
            maxLength={128}
            value={key}
            onInput={(event) => change(index, [event.currentTarget.value, value])}
          />
          <input
            aria-label={`Value of label ${index + 1}`}
            placeholder="value"
            maxLength={1024}
            value={value}
            onInput={(event) => change(index, [key, event.currentTarget.value])}
          />
          <Button
            kind="quiet"
            label={`Remove label ${key === "" ? index + 1 : key}`}
            onClick={() => onChange(rows.toSpliced(index, 1))}
          >
            ✕
          </Button>
        </div>
      ))}
      <Button onClick={() => onChange([...rows, ["", ""]])}>Add a label</Button>
    </fieldset>
  );
}
