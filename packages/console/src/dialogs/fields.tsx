import type { ComponentChildren, JSX } from "preact";
import { useId } from "preact/hooks";

/** Up to 128 letters, digits, dots, dashes and underscores, as the server wants names. */
const NAME_PATTERN = String.raw`[A-Za-z0-9][A-Za-z0-9._\-]{0,127}`;

interface FieldProperties {
  readonly label: string;
  readonly hint?: ComponentChildren;
}

export function NameField({
  label,
  hint,
  value,
  onChange,
  placeholder,
}: FieldProperties & {
  readonly value: string;
  readonly onChange: (value: string) => void;
  readonly placeholder?: string;
}): JSX.Element {
  const id = useId();
  return (
    <div class="field">
      <label for={id}>{label}</label>
      <input
        id={id}
        value={value}
        autoComplete="off"
        spellcheck={false}
        pattern={NAME_PATTERN}
        placeholder={placeholder}
        title="Letters, digits, dots, dashes and underscores; it begins with a letter or a digit"
        aria-describedby={hint === undefined ? undefined : `${id}-hint`}
        onInput={(event) => onChange(event.currentTarget.value)}
      />
      <Hint id={id}>{hint}</Hint>
    </div>
  );
}

export function TextField({
  label,
  hint,
  value,
  onChange,
  ...rest
}: FieldProperties & {
  readonly value: string;
  readonly onChange: (value: string) => void;
  readonly placeholder?: string;
  readonly inputMode?: "decimal" | "numeric";
}): JSX.Element {
  const id = useId();
  return (
    <div class="field">
      <label for={id}>{label}</label>
      <input
        id={id}
        value={value}
        autoComplete="off"
        spellcheck={false}
        {...rest}
        aria-describedby={hint === undefined ? undefined : `${id}-hint`}
        onInput={(event) => onChange(event.currentTarget.value)}
      />
      <Hint id={id}>{hint}</Hint>
    </div>
  );
}

export interface Choice {
  readonly value: string;
  readonly text: string;
  readonly disabled?: boolean;
  /** Choices of one group stand together under its name. */
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
  const id = useId();
  return (
    <div class="field">
      <label for={id}>{label}</label>
      <select
        id={id}
        value={value}
        aria-describedby={hint === undefined ? undefined : `${id}-hint`}
        onChange={(event) => onChange(event.currentTarget.value)}
      >
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
      <Hint id={id}>{hint}</Hint>
    </div>
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

function Hint({ id, children }: { readonly id: string; readonly children: ComponentChildren }): JSX.Element | null {
  if (children === undefined) return null;
  return (
    <span class="hint" id={`${id}-hint`}>
      {children}
    </span>
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
  const id = useId();
  return (
    <div class="field">
      <label for={id}>{label}</label>
      <input
        id={id}
        type="number"
        inputMode="numeric"
        required
        min={min}
        max={max}
        step={1}
        value={Number.isNaN(value) ? "" : value}
        aria-describedby={hint === undefined ? undefined : `${id}-hint`}
        onInput={(event) => onChange(event.currentTarget.valueAsNumber)}
      />
      <Hint id={id}>{hint}</Hint>
    </div>
  );
}
