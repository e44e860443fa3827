import type { JSX } from "preact";
import type { Keep } from "../format/retention.ts";
import { TextField } from "./fields.tsx";

/** The numbers of a rule as typed. */
export interface KeepTexts {
  readonly last: string;
  readonly hourly: string;
  readonly daily: string;
}

const MOST = 1_000_000;

export function textsOfKeep(keep: Keep | undefined): KeepTexts {
  const text = (count: number | undefined): string => (count === undefined ? "" : String(count));
  return { last: text(keep?.keepLast), hourly: text(keep?.hourly), daily: text(keep?.daily) };
}

/** Undefined: not set, so the server decides. */
export function keepOfTexts({ last, hourly, daily }: KeepTexts): Keep | undefined {
  const keep: Keep = {
    ...(last === "" ? {} : { keepLast: Number(last) }),
    ...(hourly === "" ? {} : { hourly: Number(hourly) }),
    ...(daily === "" ? {} : { daily: Number(daily) }),
  };
  return Object.keys(keep).length === 0 ? undefined : keep;
}

/** Whether the server accepts it: whole numbers that keep at least one. */
export function isKeep(texts: KeepTexts): boolean {
  const given = Object.values<string>({ ...texts }).filter((text) => text !== "");
  if (given.some((text) => !/^\d{1,7}$/.test(text) || Number(text) > MOST)) return false;
  return given.length === 0 || given.some((text) => Number(text) > 0);
}

interface KeepFieldsProperties {
  readonly title: string;
  readonly hint: string;
  readonly texts: KeepTexts;
  readonly onChange: (texts: KeepTexts) => void;
}

export function KeepFields({ title, hint, texts, onChange }: KeepFieldsProperties): JSX.Element {
  const field = (label: string, name: keyof KeepTexts): JSX.Element => (
    <TextField
      label={label}
      value={texts[name]}
      inputMode="numeric"
      pattern="[0-9]{1,7}"
      title="A whole number"
      onChange={(value) => onChange({ ...texts, [name]: value.trim() })}
    />
  );
  return (
    <fieldset class="keep-fields">
      <legend>{title}</legend>
      <div class="keep-numbers">
        {field("Newest", "last")}
        {field("Hourly", "hourly")}
        {field("Daily", "daily")}
      </div>
      <p class="hint">{hint}</p>
    </fieldset>
  );
}
