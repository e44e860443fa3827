import type { ComponentChildren, JSX } from "preact";
import { useId } from "preact/hooks";

/** Up to 128 letters, digits, dots, dashes and underscores, as the server requires. */
const NAME_PATTERN = String.raw`[A-Za-z0-9][A-Za-z0-9._\-]{0,127}`;

interface FieldProperties {
  readonly label: string;
  readonly hint?: ComponentChildren;
}

/** The label and hint of an input; the input has the id, and is described by the hint. */
function Field({
  label,
  hint,
  children,
}: FieldProperties & {
  readonly children: (input: { readonly id: string; readonly "aria-describedby": string | undefined }) => JSX.Element;
}): JSX.Element {
  const id = useId();
  const hintId = hint === undefined ? undefined : `${id}-hint`;
  return (
    <div class="field">
      <label for={id}>{label}</label>
      {children({ id, "aria-describedby": hintId })}
      {hintId === undefined ? null : (
        <span class="hint" id={hintId}>
          {hint}
        </span>
      )}
    </div>
  );
}

interface TextProperties extends FieldProperties {
  readonly value: string;
  readonly onChange: (value: string) => void;
  readonly placeholder?: string;
  readonly inputMode?: "decimal" | "numeric";
  readonly pattern?: string;
  readonly title?: string;
}

export function TextField({ label, hint, onChange, ...rest }: TextProperties): JSX.Element {
  return (
    <Field label={label} hint={hint}>
      {(input) => (
        <input
          {...input}
          autoComplete="off"
          spellcheck={false}
          {...rest}
          onInput={(event) => onChange(event.currentTarget.value)}
        />
      )}
    </Field>
  );
}

export function NameField(properties: Omit<TextProperties, "pattern" | "title" | "inputMode">): JSX.Element {
  const title = "Letters, digits, dots, dashes and underscores, beginning with a letter or a digit";
  return <TextField {...properties} pattern={NAME_PATTERN} title={title} />;
}

export interface Choice {
  readonly value: string;
  readonly text: string;
  readonly disabled?: boolean;
  /** Choices of one group are shown together under its name. */
  readonly group?: string;
}

export function SelectField({
  label,
  hint,
  value,
  choices,
  onChange,
}: FieldProperties & {
  readonly value: string;
  readonly choices: readonly Choice[];
  readonly onChange: (value: string) => void;
}): JSX.Element {
  return (
    <Field label={label} hint={hint}>
      {(input) => (
        <select {...input} value={value} onChange={(event) => onChange(event.currentTarget.value)}>
          {[...Map.groupBy(choices, ({ group }) => group)].map(([group, members]) =>
            group === undefined ? (
              <Options choices={members} />
            ) : (
              <optgroup key={group} label={group}>
                <Options choices={members} />
              </optgroup>
            ),
          )}
        </select>
      )}
    </Field>
  );
}

function Options({ choices }: { readonly choices: readonly Choice[] }): JSX.Element {
  return (
    <>
      {choices.map(({ value, text, disabled }) => (
        <option key={value} value={value} disabled={disabled}>
          {text}
        </option>
      ))}
    </>
  );
}

export function NumberField({
  label,
  hint,
  value,
  min,
  max,
  onChange,
}: FieldProperties & {
  readonly value: number;
  readonly min: number;
  readonly max: number;
  readonly onChange: (value: number) => void;
}): JSX.Element {
  return (
    <Field label={label} hint={hint}>
      {(input) => (
        <input
          {...input}
          type="number"
          inputMode="numeric"
          required
          min={min}
          max={max}
          step={1}
          value={Number.isNaN(value) ? "" : value}
          onInput={(event) => onChange(event.currentTarget.valueAsNumber)}
        />
      )}
    </Field>
  );
}
